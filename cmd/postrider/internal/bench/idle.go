package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// IdleResult is what relays cost that have nothing to do, all of them together. Pointers are nil where the processor time cannot
// be seen.
type IdleResult struct {
	Databases  int      `json:"databases"`
	Server     *float64 `json:"server_ms_per_second,omitempty"`   // processor time of the server, above that without relays
	Sessions   *float64 `json:"sessions_ms_per_second,omitempty"` // that of the relays' sessions alone
	Relay      *float64 `json:"relay_ms_per_second,omitempty"`    // that of this process
	Statements float64  `json:"statements_per_second"`
	RoundTrips float64  `json:"round_trips_per_second"`
	LeftOut    string   `json:"left_out,omitempty"`
}

// idleUse is what is used in a second.
type idleUse struct {
	server, sessions, own float64 // milliseconds of processor time
	statements, trips     float64
}

// idleRun is one run of the scenario.
type idleRun struct {
	lab        *Lab
	databases  databases
	trips      trips
	statements statements
	seen       bool // the server's processes
}

// Idle measures relays that have nothing to do, one for each of some databases, against the same server without them, before and
// after.
func Idle(ctx context.Context, l *Lab) (_ IdleResult, err error) {
	r := &idleRun{lab: l}
	r.databases = databases{lab: l, open: r.open}
	defer func() { err = errors.Join(err, r.databases.drop(ctx)) }()
	if err := r.prepare(ctx); err != nil {
		return IdleResult{}, err
	}
	var without, beside []idleUse
	quiet := func(what string) error {
		use, err := r.phase(ctx, what)
		without = append(without, use)
		return err
	}
	l.Progress("letting the server settle")
	if !pause(ctx, min(settled, l.Phase)) {
		return IdleResult{}, ctx.Err()
	}
	if err := quiet("before all rounds, without relays"); err != nil {
		return IdleResult{}, err
	}
	for round := 1; round <= l.Rounds; round++ {
		what := fmt.Sprintf("round %d of %d", round, l.Rounds)
		use, err := r.relayed(ctx, what)
		if err != nil {
			return IdleResult{}, err
		}
		beside = append(beside, use)
		if err := quiet(what + ", without relays"); err != nil {
			return IdleResult{}, err
		}
	}
	_, ownSeen := ownTime()
	return idleFigures(without, beside, IdleResult{Databases: l.Databases}, r.seen, ownSeen), nil
}

// prepare creates the databases and finds out what can be measured.
func (r *idleRun) prepare(ctx context.Context) error {
	conn, err := r.lab.admin.Acquire(ctx)
	if err != nil {
		return err
	}
	pid, err := backendOf(ctx, conn.Conn())
	conn.Release()
	if err != nil {
		return err
	}
	r.seen = pid != 0
	free, err := r.databases.free(ctx)
	if err != nil {
		return err
	}
	each := min(relayConnections, (free-spare)/r.lab.Databases)
	if each < perDatabase {
		return fmt.Errorf("bench: %d databases need %d connections, and the server has %d to give", r.lab.Databases,
			perDatabase*r.lab.Databases+spare, free)
	}
	if err := r.databases.grow(ctx, r.lab.Databases); err != nil {
		if mayNot(err) {
			return fmt.Errorf("bench: the scenario creates databases, and the user may not: %w", err)
		}
		return err
	}
	for _, lab := range r.databases.labs {
		lab.engine = idleEngine{logEngine{lab}, each, r}
	}
	return nil
}

// open lays out a log in a new database, and keeps no connection to it.
func (r *idleRun) open(ctx context.Context, config *pgxpool.Config) (*Lab, error) {
	o := r.lab.Options
	o.Progress = nil
	lab, err := openNamed(ctx, config, o, r.lab.schema)
	if err == nil {
		lab.Leave()
	}
	return lab, err
}

// idleEngine is the log as "postrider relay" opens it, with connections that count what they are used for.
type idleEngine struct {
	logEngine
	connections int
	run         *idleRun
}

func (e idleEngine) open(ctx context.Context) (postrider.Store, func(), error) {
	config := e.lab.config.Copy()
	config.MaxConns = int32(e.connections) //nolint:gosec // at most relayConnections
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnConfig.RuntimeParams["application_name"] = relayName
	config.ConnConfig.Tracer = &e.run.statements
	e.run.trips.watch(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	store, err := postgres.New(pool, e.lab.storeConfig())
	return store, pool.Close, err
}

// settled is how long a relay is left alone after its start, if a phase is not shorter: it has then looked at everything once, and
// polls at its slowest.
const settled = 3 * time.Second

// relayed measures a phase with a relay for each database.
func (r *idleRun) relayed(ctx context.Context, what string) (use idleUse, err error) {
	var relays []*carrier
	defer func() {
		for _, c := range relays {
			c.stop()
		}
		for _, c := range relays {
			if halted := c.halt(); err == nil {
				err = halted
			}
		}
	}()
	for i, lab := range r.databases.labs {
		r.lab.progressf("%s, starting relay %d of %d", what, i+1, len(r.databases.labs))
		c, err := lab.carryWith(ctx, relay.Config{Feed: defaultFeed, Create: true, Canary: r.lab.Canary, Logger: r.lab.Logger}, discard.New())
		if err != nil {
			return use, err
		}
		relays = append(relays, c)
	}
	r.lab.Progress(what + ", letting the relays settle")
	if !pause(ctx, min(settled, r.lab.Phase)) {
		return use, ctx.Err()
	}
	return r.phase(ctx, what+", with relays")
}

// phase measures what is used while nobody writes.
func (r *idleRun) phase(ctx context.Context, what string) (use idleUse, err error) {
	defer r.lab.counting(what, r.lab.Phase)()
	before, err := r.processes(ctx)
	if err != nil {
		return use, err
	}
	trips, statements, start := r.trips.Load(), r.statements.Load(), time.Now()
	own, _ := ownTime()
	if !pause(ctx, r.lab.Phase) {
		return use, ctx.Err()
	}
	ownAfter, _ := ownTime()
	seconds := time.Since(start).Seconds()
	milli := func(d time.Duration) float64 { return d.Seconds() * 1e3 / seconds }
	use.own = milli(ownAfter - own)
	use.trips = float64(r.trips.Load()-trips) / seconds
	use.statements = float64(r.statements.Load()-statements) / seconds
	after, err := r.processes(ctx)
	for pid, p := range after {
		used := milli(p.used - before[pid].used)
		use.server += used
		if p.relay {
			use.sessions += used
		}
	}
	return use, err
}

// serverProcess is one of those that count.
type serverProcess struct {
	relay bool // a session of a relay
	used  time.Duration
}

// processes are the relays' sessions and what the server runs for everybody, such as the checkpointer. Other clients' sessions, and
// autovacuum at work for whoever has written, have nothing to do with the relays.
func (r *idleRun) processes(ctx context.Context) (map[int]serverProcess, error) {
	found := make(map[int]serverProcess)
	if !r.seen {
		return found, nil
	}
	var names []string
	for _, lab := range r.databases.labs {
		names = append(names, lab.config.ConnConfig.Database)
	}
	rows, err := r.lab.admin.Query(ctx, `SELECT pid, coalesce(backend_type = 'client backend', false) FROM pg_stat_activity
		WHERE application_name = $1 AND datname = ANY ($2::text[])
		OR backend_type NOT IN ('client backend', 'parallel worker', 'autovacuum worker')`, relayName, names)
	if err != nil {
		return nil, err
	}
	var pid int
	var relay bool
	_, err = pgx.ForEachRow(rows, []any{&pid, &relay}, func() error {
		if used, err := processorTime(pid); err == nil { // it may have ended meanwhile
			found[pid] = serverProcess{relay, used}
		}
		return nil
	})
	return found, err
}

// idleFigures takes the medians of what is used with relays above the least that is used without: after databases were created,
// the server has work of its own for a while.
func idleFigures(without, beside []idleUse, result IdleResult, serverSeen, ownSeen bool) IdleResult {
	all := func(phases []idleUse, what func(idleUse) float64) (values []float64) {
		for _, use := range phases {
			values = append(values, what(use))
		}
		return values
	}
	above := func(what func(idleUse) float64) float64 {
		return median(all(beside, what)) - slices.Min(all(without, what))
	}
	result.Server = known(serverSeen, above(func(u idleUse) float64 { return u.server }), 3)
	result.Sessions = known(serverSeen, above(func(u idleUse) float64 { return u.sessions }), 3)
	result.Relay = known(ownSeen, above(func(u idleUse) float64 { return u.own }), 3)
	result.Statements = rounded(above(func(u idleUse) float64 { return u.statements }), 1)
	result.RoundTrips = rounded(above(func(u idleUse) float64 { return u.trips }), 1)
	if !serverSeen {
		result.LeftOut = notSeen
	}
	return result
}

// Table implements [Result].
func (r IdleResult) Table() [][]string {
	rows := [][]string{{"databases, each with a relay", strconv.Itoa(r.Databases), ""}}
	for _, f := range []struct {
		what  string
		value *float64
	}{
		{"server, above that without relays", r.Server},
		{"the relays' sessions alone", r.Sessions},
		{"relays", r.Relay},
	} {
		if f.value != nil {
			rows = append(rows, []string{f.what, fraction(*f.value), "ms/s of processor time"})
		}
	}
	rows = append(rows,
		[]string{"statements", millis(r.Statements), "/s"},
		[]string{"round trips", millis(r.RoundTrips), "/s"})
	if r.LeftOut != "" {
		rows = append(rows, []string{}, []string{r.LeftOut})
	}
	return rows
}
