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

	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

// IdleResult is the total cost of idle relays. Pointers are nil if the processor time is not
// visible.
type IdleResult struct {
	Databases  int      `json:"databases"`
	Server     *float64 `json:"server_ms_per_second,omitempty"`   // processor time of the server, above that without relays
	Sessions   *float64 `json:"sessions_ms_per_second,omitempty"` // that of the relays' sessions alone
	Relay      *float64 `json:"relay_ms_per_second,omitempty"`    // that of this process
	Statements float64  `json:"statements_per_second"`
	CountedBy  string   `json:"statements_counted_by"`
	RoundTrips float64  `json:"round_trips_per_second"` // counted on the relays' connections
	LeftOut    string   `json:"left_out,omitempty"`
}

// How the server counts statements.
const (
	byStatements   = "pg_stat_statements"
	byTransactions = "transactions in pg_stat_database" // nearly every statement of a relay is a transaction
)

// idleUse is the use of resources per second.
type idleUse struct {
	server, sessions, own float64 // milliseconds of processor time
	statements, trips     float64
}

// idleRun is one run of the scenario.
type idleRun struct {
	lab       *Lab
	databases databases
	trips     trips
	seen      bool // whether the server's processes are visible
	countedBy string
}

// Idle measures idle relays, one for each of some databases, compared with the same server without
// them, before and after.
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
	if !sleep.For(ctx, min(settled, l.Phase/2)) {
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
	return idleFigures(without, beside, IdleResult{Databases: l.Databases, CountedBy: r.countedBy}, r.seen, ownSeen), nil
}

// prepare creates the databases and determines what can be measured.
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
		lab.engine = idleEngine{logEngine{lab}, each, &r.trips}
	}
	r.countedBy = byStatements
	if _, err := r.statements(ctx); err != nil {
		r.countedBy = byTransactions // the extension is missing or not loaded
	}
	return ctx.Err()
}

// open creates a log in a new database, and closes its connections.
func (r *idleRun) open(ctx context.Context, config *pgxpool.Config) (*Lab, error) {
	o := r.lab.Options
	o.Progress = nil
	lab, err := openNamed(ctx, config, o, r.lab.schema)
	if err == nil {
		lab.Leave()
	}
	return lab, err
}

// idleEngine is the log as "postrider relay" opens it, with connections that count their round
// trips.
type idleEngine struct {
	logEngine
	connections int
	trips       *trips
}

func (e idleEngine) open(ctx context.Context) (feeds.Store, func(), error) {
	config := e.lab.config.Copy()
	config.MaxConns = int32(e.connections) //nolint:gosec // at most relayConnections
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ConnConfig.RuntimeParams["application_name"] = relayName
	e.trips.watch(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	db, err := e.lab.open(pool)
	if err != nil {
		return nil, pool.Close, err
	}
	return db.Feeds(), pool.Close, nil
}

// settled is how long to wait after the start of a relay, at most half a phase. After that a relay
// has checked everything once, and polls at its slowest rate.
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
	if !sleep.For(ctx, min(settled, r.lab.Phase/2)) {
		return use, ctx.Err()
	}
	return r.phase(ctx, what+", with relays")
}

// phase measures the use of resources without producers.
func (r *idleRun) phase(ctx context.Context, what string) (use idleUse, err error) {
	defer r.lab.counting(what, r.lab.Phase)()
	statements, err := r.statements(ctx)
	if err != nil {
		return use, err
	}
	before, err := r.processes(ctx)
	if err != nil {
		return use, err
	}
	trips, start := r.trips.Load(), time.Now()
	own, _ := ownTime()
	if !sleep.For(ctx, r.lab.Phase) {
		return use, ctx.Err()
	}
	ownAfter, _ := ownTime()
	seconds := time.Since(start).Seconds()
	milli := func(d time.Duration) float64 { return d.Seconds() * 1e3 / seconds }
	use.own = milli(ownAfter - own)
	use.trips = float64(r.trips.Load()-trips) / seconds
	after, err := r.processes(ctx)
	if err != nil {
		return use, err
	}
	for pid, p := range after {
		used := milli(p.used - before[pid].used)
		use.server += used
		if p.relay {
			use.sessions += used
		}
	}
	statementsAfter, err := r.statements(ctx)
	use.statements = float64(statementsAfter-statements) / seconds
	return use, err
}

// names returns the names of the databases.
func (r *idleRun) names() (names []string) {
	for _, lab := range r.databases.labs {
		names = append(names, lab.config.ConnConfig.Database)
	}
	return names
}

// statements returns how many statements the server has counted in the databases. The server
// reports transactions at least a second late.
func (r *idleRun) statements(ctx context.Context) (n int64, err error) {
	query := "SELECT coalesce(sum(xact_commit + xact_rollback), 0)::bigint FROM pg_stat_database WHERE datname = ANY ($1::text[])"
	if r.countedBy == byStatements {
		query = `SELECT coalesce(sum(s.calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
			WHERE d.datname = ANY ($1::text[])`
	}
	err = r.lab.admin.QueryRow(ctx, query, r.names()).Scan(&n)
	return n, err
}

// serverProcess is a measured process of the server.
type serverProcess struct {
	relay bool // a session of a relay
	used  time.Duration
}

// processes returns the relays' sessions and the server's background processes, such as the
// checkpointer. It leaves out the sessions of other clients, and autovacuum workers.
func (r *idleRun) processes(ctx context.Context) (map[int]serverProcess, error) {
	found := make(map[int]serverProcess)
	if !r.seen {
		return found, nil
	}
	rows, err := r.lab.admin.Query(ctx, `SELECT pid, coalesce(backend_type = 'client backend', false) FROM pg_stat_activity
		WHERE application_name = $1 AND datname = ANY ($2::text[])
		OR backend_type NOT IN ('client backend', 'parallel worker', 'autovacuum worker')`, relayName, r.names())
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

// idleFigures returns the medians with relays minus the minimum without. It uses the minimum,
// because the server is still busy for a while after databases were created.
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
		[]string{"statements, by " + r.CountedBy, millis(r.Statements), "/s"},
		[]string{"round trips", millis(r.RoundTrips), "/s"})
	if r.LeftOut != "" {
		rows = append(rows, []string{}, []string{r.LeftOut})
	}
	return rows
}
