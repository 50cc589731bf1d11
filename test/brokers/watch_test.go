package brokers_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// produce commits one message per transaction, with four writers as fast as they can, for a while.
// It returns the number of transactions per second.
func (s *scene) produce(length time.Duration) float64 {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), length)
	defer cancel()
	const writers = 4
	var done atomic.Int64
	var run sync.WaitGroup
	next := make([]int, s.keys) // by key: the number of its next message
	for n := range next {
		next[n] = s.top + n
	}
	for w := range writers {
		run.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ { // each writer has its own keys
				key := (w + turn*writers) % (s.keys / writers * writers)
				m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: strconv.Itoa(key)}, fmt.Appendf(nil, "%d", next[key]))
				m.Topic = s.name
				err := pgx.BeginFunc(context.WithoutCancel(ctx), s.pool, func(tx pgx.Tx) error {
					return s.db.Outbox().Enqueue(context.WithoutCancel(ctx), tx, m)
				})
				if err != nil {
					s.t.Errorf("a producer failed: %v", err)
					return
				}
				next[key] += s.keys
				done.Add(1)
			}
		})
	}
	start := time.Now()
	run.Wait()
	rate := float64(done.Load()) / time.Since(start).Seconds()
	s.committed.Add(done.Load())
	s.top = slices.Max(next)
	return rate
}

// sight is what the watcher saw in the database while a broker was down.
type sight struct {
	length     time.Duration
	ledgerRows int64
	open       time.Duration // the longest transaction of the relay or a producer
	longest    time.Duration // that one of them stood idle
}

// expect limits the relay to its heartbeat: with the default lease of 10 s each of the 8 shards is
// renewed at least every 10/3 s, and one round of progress may have been in flight when the broker
// went down.
func (v sight) expect(t *testing.T) {
	t.Helper()
	if most := 8 * (int64(v.length/(3*time.Second)) + 3); v.ledgerRows > most {
		t.Errorf("%d rows were written to the ledger in %v, a heartbeat is at most %d", v.ledgerRows, v.length, most)
	}
	if v.open > 3*time.Second { // a slow disk holds one up for a while
		t.Errorf("a transaction was open for %v", v.open)
	}
	if v.longest > 800*time.Millisecond { // a call to the destination takes a second or more
		t.Errorf("a transaction stood idle for %v", v.longest)
	}
}

// watcher samples the database.
type watcher struct {
	s      *scene
	start  time.Time
	rows   int64
	cancel context.CancelFunc
	run    sync.WaitGroup
	seen   sight
}

func (s *scene) watch() *watcher {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &watcher{s: s, start: time.Now(), cancel: cancel}
	w.rows = s.ledgerRows()
	w.run.Go(func() {
		for wait(ctx, 50*time.Millisecond) {
			var open, longest *float64
			err := s.pool.QueryRow(ctx, `SELECT extract(epoch FROM max(clock_timestamp() - xact_start))::float8,
				extract(epoch FROM max(clock_timestamp() - state_change) FILTER (WHERE state LIKE 'idle in transaction%'))::float8
				FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
				AND query LIKE '%' || $1 || '%'`, s.cfg.Schema).Scan(&open, &longest)
			if err == nil && open != nil {
				w.seen.open = max(w.seen.open, time.Duration(*open*float64(time.Second)))
			}
			if err == nil && longest != nil {
				w.seen.longest = max(w.seen.longest, time.Duration(*longest*float64(time.Second)))
			}
		}
	})
	return w
}

func (w *watcher) stop() sight {
	w.s.t.Helper()
	w.cancel()
	w.run.Wait()
	w.seen.length = time.Since(w.start)
	w.seen.ledgerRows = w.s.ledgerRows() - w.rows
	return w.seen
}

// ledgerRows returns how many rows have ever been added to the ledger.
func (s *scene) ledgerRows() int64 {
	s.t.Helper()
	var n int64
	err := s.pool.QueryRow(s.t.Context(), "SELECT coalesce(sum(n), 0) FROM (SELECT max(n) AS n FROM "+
		pgx.Identifier{s.cfg.Schema}.Sanitize()+".checkpoints GROUP BY feed, shard) newest").Scan(&n)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
