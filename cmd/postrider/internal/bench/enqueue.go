package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// EnqueueVariant is the cost of one transaction that is written in one way. Costs are measured with
// one writer.
type EnqueueVariant struct {
	Name             string   `json:"name"`
	Messages         int      `json:"messages"`            // in each transaction
	Server           *float64 `json:"server_us,omitempty"` // processor time of the server's sessions
	Client           *float64 `json:"client_us,omitempty"` // processor time of this process
	RoundTrips       float64  `json:"round_trips"`
	WAL              float64  `json:"wal_bytes"`
	PerSecond        float64  `json:"per_second"`         // transactions of one writer
	WritersPerSecond float64  `json:"writers_per_second"` // transactions of all writers
}

// EnqueueResult is the cost of a message for the producer and its server. A variant adds its cost
// minus that of the business row alone. Pointers are nil if the processor time is not visible.
type EnqueueResult struct {
	Writers        int              `json:"writers"`
	Business       *float64         `json:"business_server_us,omitempty"`
	Plain          *float64         `json:"plain_server_us,omitempty"`
	Enqueue        *float64         `json:"enqueue_server_us,omitempty"`
	Ratio          *float64         `json:"ratio,omitempty"`           // Enqueue adds ÷ the plain table adds
	PipelinedRatio *float64         `json:"pipelined_ratio,omitempty"` // a message adds to a pipeline ÷ the plain table adds
	ClientRatio    *float64         `json:"client_ratio,omitempty"`    // Ratio, of the client's processor time
	Batch10Ratio   *float64         `json:"batch10_ratio,omitempty"`   // ten messages in one Enqueue add ÷ one adds
	Variants       []EnqueueVariant `json:"variants"`
	LeftOut        string           `json:"left_out,omitempty"`
}

// turn is a short measurement of one variant.
type turn struct {
	transactions   int64
	elapsed        time.Duration
	server, client time.Duration
	trips, wal     int64
}

// enqueueRun is one run of the scenario.
type enqueueRun struct {
	lab      *Lab
	variants []variant
	clerks   []*clerk
	trips    trips
	pids     []int // of the clerks' sessions; empty if they are not visible
}

// Enqueue measures what a message adds to a transaction, compared with a plain hand-written outbox
// table. All variants have short turns, in random order each round, so that other load on the
// machine affects all of them alike. Costs are the mean of the lowest third of the turns, rates the
// median.
func Enqueue(ctx context.Context, l *Lab) (_ EnqueueResult, err error) {
	r := &enqueueRun{lab: l, variants: enqueueVariants()}
	defer func() { err = errors.Join(err, r.dismiss(ctx)) }()
	if err := r.prepare(ctx); err != nil {
		return EnqueueResult{}, err
	}
	alone, err := r.phase(ctx, 1)
	if err != nil {
		return EnqueueResult{}, err
	}
	together, err := r.phase(ctx, len(r.clerks))
	if err != nil {
		return EnqueueResult{}, err
	}
	_, ownSeen := ownTime()
	return enqueueFigures(r.variants, alone, together, enqueueSeen{len(r.pids) > 0, ownSeen, len(r.clerks)}), nil
}

// prepare creates the tables, connects the writers and warms up the plan caches of their sessions.
func (r *enqueueRun) prepare(ctx context.Context) error {
	r.lab.Progress("warming up")
	for _, statement := range createPlain {
		if _, err := r.lab.admin.Exec(ctx, r.lab.in(statement)); err != nil {
			return err
		}
	}
	seen := true
	for range r.lab.Writers {
		c, err := r.lab.newClerk(ctx, &r.trips)
		if err != nil {
			return err
		}
		r.clerks = append(r.clerks, c)
		pid, err := backendOf(ctx, c.conn)
		if err != nil {
			return err
		}
		seen = seen && pid != 0
		r.pids = append(r.pids, pid)
	}
	if !seen {
		r.pids = nil
	}
	for _, v := range r.variants {
		if _, err := r.work(ctx, v, r.clerks, 0, planned); err != nil {
			return err
		}
	}
	return nil
}

// planned is the number of executions after which a session caches the plan of a statement.
const planned = 6

// dismiss disconnects the writers.
func (r *enqueueRun) dismiss(ctx context.Context) error {
	var errs []error
	for _, c := range r.clerks {
		errs = append(errs, c.conn.Close(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

// phase measures all variants in turn with the given number of writers, and returns the turns of
// each.
func (r *enqueueRun) phase(ctx context.Context, writers int) ([][]turn, error) {
	length := r.lab.Phase / time.Duration(r.lab.Rounds*len(r.variants))
	turns := make([][]turn, len(r.variants))
	for round := 1; round <= r.lab.Rounds; round++ {
		r.lab.progressf("writers: %d, round %d of %d", writers, round, r.lab.Rounds)
		for _, i := range rand.Perm(len(r.variants)) {
			t, err := r.turn(ctx, r.variants[i], writers, length)
			if err != nil {
				return nil, fmt.Errorf("bench: %s: %w", r.variants[i].name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

// turn measures one variant for a short time.
func (r *enqueueRun) turn(ctx context.Context, v variant, writers int, length time.Duration) (t turn, err error) {
	pids := r.pids[:min(writers, len(r.pids))]
	walBefore, err := r.lab.wal(ctx)
	if err != nil {
		return t, err
	}
	serverBefore, err := timeOf(pids)
	if err != nil {
		return t, err
	}
	trips, start := r.trips.Load(), time.Now()
	own, _ := ownTime()
	t.transactions, err = r.work(ctx, v, r.clerks[:writers], length, 1)
	if err != nil {
		return t, err
	}
	ownAfter, _ := ownTime()
	t.elapsed, t.client, t.trips = time.Since(start), ownAfter-own, r.trips.Load()-trips
	serverAfter, err := timeOf(pids)
	if err != nil {
		return t, err
	}
	walAfter, err := r.lab.wal(ctx)
	t.server, t.wal = serverAfter-serverBefore, walAfter-walBefore
	return t, err
}

// work lets each writer commit until the time is over, and at least the given number of times. It
// returns the number of commits.
func (r *enqueueRun) work(ctx context.Context, v variant, clerks []*clerk, length time.Duration, least int) (sum int64, err error) {
	end := time.Now().Add(length)
	counts, errs := make([]int64, len(clerks)), make([]error, len(clerks))
	commit := func(i int) {
		for n := 0; n < least || time.Now().Before(end); n++ {
			if errs[i] = v.commit(ctx, clerks[i]); errs[i] != nil {
				return
			}
			counts[i]++
		}
	}
	var wg sync.WaitGroup
	for i := range clerks {
		wg.Go(func() { commit(i) })
	}
	wg.Wait()
	for _, n := range counts {
		sum += n
	}
	return sum, errors.Join(errs...)
}

// wal returns the WAL insert position of the server, in bytes.
func (l *Lab) wal(ctx context.Context) (position int64, err error) {
	err = l.admin.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&position)
	return position, err
}

// enqueueSeen is what could be measured, and the number of writers.
type enqueueSeen struct {
	server, client bool
	writers        int
}

// enqueueFigures computes the result from the turns of each variant, with one writer and with all
// of them.
func enqueueFigures(variants []variant, alone, together [][]turn, seen enqueueSeen) EnqueueResult {
	result := EnqueueResult{Writers: seen.writers}
	if !seen.server {
		result.LeftOut = notSeen
	}
	server, client := make(map[string]float64), make(map[string]float64)
	for i, v := range variants {
		name := v.name
		server[name] = perTransaction(alone[i], func(t turn) float64 { return float64(t.server) / 1e3 })
		client[name] = perTransaction(alone[i], func(t turn) float64 { return float64(t.client) / 1e3 })
		result.Variants = append(result.Variants, EnqueueVariant{
			Name: name, Messages: v.messages,
			Server:           known(seen.server, server[name], 1),
			Client:           known(seen.client, client[name], 1),
			RoundTrips:       rounded(perTransaction(alone[i], func(t turn) float64 { return float64(t.trips) }), 1),
			WAL:              rounded(perTransaction(alone[i], func(t turn) float64 { return float64(t.wal) }), 0),
			PerSecond:        rounded(turnRate(alone[i]), 0),
			WritersPerSecond: rounded(turnRate(together[i]), 0),
		})
	}
	plainAdds := server[plain] - server[business]
	result.Business = known(seen.server, server[business], 1)
	result.Plain = known(seen.server, server[plain], 1)
	result.Enqueue = known(seen.server, server[enqueue], 1)
	result.Ratio = known(seen.server, added(server[enqueue], server[plain], server[business]), 3)
	result.PipelinedRatio = known(seen.server, quotient(server[pipelinedEnqueue]-server[pipelinedBusiness], plainAdds), 3)
	result.Batch10Ratio = known(seen.server, added(server[enqueue10], server[enqueue], server[business]), 3)
	result.ClientRatio = known(seen.client, added(client[enqueue], client[plain], client[business]), 3)
	return result
}

// known returns a rounded figure, or nil if it was not visible.
func known(seen bool, v float64, digits int) *float64 {
	if !seen {
		return nil
	}
	v = rounded(v, digits)
	return &v
}

// perTransaction returns the cost of a transaction in the lowest third of the turns.
func perTransaction(turns []turn, what func(turn) float64) float64 {
	values := make([]float64, len(turns))
	for i, t := range turns {
		values[i] = quotient(what(t), float64(t.transactions))
	}
	return leastThird(values)
}

// turnRate returns the median rate of transactions per second.
func turnRate(turns []turn) float64 {
	values := make([]float64, len(turns))
	for i, t := range turns {
		values[i] = perSecond(t.transactions, t.elapsed)
	}
	return median(values)
}

// Table implements [Result].
func (r EnqueueResult) Table() [][]string {
	number := func(v *float64, format func(float64) string) string {
		if v == nil {
			return "-"
		}
		return format(*v)
	}
	rows := [][]string{{"one transaction", "server µs", "client µs", "round trips", "WAL bytes", "1 writer, /s", strconv.Itoa(r.Writers) + " writers, /s"}}
	for _, v := range r.Variants {
		rows = append(rows, []string{v.Name, number(v.Server, millis), number(v.Client, millis), millis(v.RoundTrips), whole(v.WAL),
			whole(v.PerSecond), whole(v.WritersPerSecond)})
	}
	rows = append(rows, []string{},
		[]string{"enqueue adds ÷ plain adds, server", number(r.Ratio, fraction)},
		[]string{"enqueue adds ÷ plain adds, client", number(r.ClientRatio, fraction)},
		[]string{"pipelined_enqueue adds to pipelined_business ÷ plain adds, server", number(r.PipelinedRatio, fraction)},
		[]string{"enqueue10 adds ÷ enqueue adds, server", number(r.Batch10Ratio, fraction)})
	if r.LeftOut != "" {
		rows = append(rows, []string{}, []string{r.LeftOut})
	}
	return rows
}
