package main

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

const (
	sampleEvery  = 5 * time.Second
	leasesEvery  = time.Second
	recoverEvery = 300 * time.Millisecond
	poolerEvery  = 15 * time.Second // longer than any fault stops it
	askPatience  = 5 * time.Second

	fresh = 2 * time.Second // a backlog with a younger oldest message counts as empty
)

// watch observes the world during faults: samples, the relays' ledger, and recovery.
type watch struct {
	stage *stage
	dsn   string

	mu      sync.Mutex
	db      *pgx.Conn
	healing []record.Event // healed, but not yet recovered
	leases  leases

	poolerAway bool
}

// run watches until ctx ends.
func (w *watch) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { each(ctx, sampleEvery, w.sample) })
	all.Go(func() { each(ctx, leasesEvery, w.collectLeases) })
	all.Go(func() { each(ctx, recoverEvery, w.lookForRecovery) })
	all.Go(func() { each(ctx, poolerEvery, w.keepPooler) })
	all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db != nil {
		_ = w.db.Close(context.WithoutCancel(ctx))
	}
}

func each(ctx context.Context, d time.Duration, do func(context.Context)) {
	for wait(ctx, d) {
		do(ctx)
	}
}

// ask uses the connection, and reconnects after an error.
func (w *watch) ask(ctx context.Context, question func(context.Context, *pgx.Conn) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if w.db == nil || w.db.IsClosed() {
		config, err := pgx.ParseConfig(w.dsn)
		if err != nil {
			return err
		}
		config.RuntimeParams["application_name"] = "campaign watch"
		if w.db, err = pgx.ConnectConfig(ctx, config); err != nil {
			w.db = nil
			return err
		}
	}
	return question(ctx, w.db)
}

func (w *watch) sample(ctx context.Context) {
	s := record.Sample{Processes: w.stage.world.Sample(ctx)}
	_ = w.ask(ctx, func(ctx context.Context, db *pgx.Conn) error { // a failed query leaves the sample without database values
		if d, err := databaseSample(ctx, db); err == nil {
			s.Database = &d
		}
		b, err := backlog(ctx, db, 200_000)
		if err == nil {
			s.Backlog = &b
		}
		if waiting, err := work.LookAtWaiting(ctx, db); err == nil {
			waiting.Dead = w.stage.operator.Buried()
			s.Waiting = &waiting
		}
		return err
	})
	s.At = time.Now()
	if err := w.stage.writer.Sample(s); err != nil {
		w.stage.log.Error("samples cannot be written", "err", err)
	}
	w.stage.screen.sample(s, w.stage.collectors.Counts())
}

// keepPooler restarts PgBouncer when it has exited, as an init system would: versions before 1.21
// may exit when a client gives up its request to cancel a query.
func (w *watch) keepPooler(ctx context.Context) {
	pooler := w.stage.world.Server(world.PgBouncer)
	before := w.poolerAway
	w.poolerAway = !pooler.Running()
	if !before || !w.poolerAway {
		return
	}
	w.stage.note(record.Event{Phase: record.Note, Target: world.PgBouncer, Detail: "ended by itself, is started again"})
	if err := pooler.Start(ctx); err != nil {
		w.stage.log.Error("the pooler cannot be started", "err", err)
	}
}

// backlog queries the product for undelivered messages. It counts up to limit messages for each
// feed.
func backlog(ctx context.Context, db *pgx.Conn, limit int) (b record.Backlog, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce(sum(p.pending), 0)::bigint, coalesce(extract(epoch FROM clock_timestamp() - min(p.oldest)), 0)::float8
		FROM postrider.feeds f CROSS JOIN LATERAL postrider.pending(f.name, $1) p`, limit).Scan(&b.Messages, &b.OldestSeconds)
	return b, err
}

// databaseSample samples the sessions of relays and consumers, and producers that wait for them.
func databaseSample(ctx context.Context, db *pgx.Conn) (d record.DatabaseSample, err error) {
	err = db.QueryRow(ctx, `
		WITH ours AS (
		  SELECT * FROM pg_stat_activity WHERE datname = current_database() AND (application_name = 'consumer' OR application_name LIKE 'relay%'))
		SELECT (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()),
		  (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - state_change)), 0)::float8 FROM ours
		   WHERE state LIKE 'idle in transaction%'),
		  (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM ours),
		  (SELECT count(*) FROM pg_stat_activity a
		   WHERE a.application_name = 'producer' AND a.wait_event_type = 'Lock'
		     AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.waitstart < clock_timestamp() - interval '100 ms')
		     AND EXISTS (SELECT FROM pg_stat_activity b WHERE b.pid = ANY (pg_blocking_pids(a.pid)) AND b.application_name LIKE 'relay%'))`,
	).Scan(&d.Deadlocks, &d.IdleSeconds, &d.OldestOpen, &d.LockWaits)
	return d, err
}

// recovery starts to wait for the recovery from a fault.
func (w *watch) recovery(healed record.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healing = append(w.healing, healed)
}

func (w *watch) lookForRecovery(ctx context.Context) {
	w.mu.Lock()
	healing := w.healing
	w.mu.Unlock()
	if len(healing) == 0 {
		return
	}
	if !w.upToDate(ctx) {
		return
	}
	now := time.Now()
	w.mu.Lock()
	w.healing = w.healing[len(healing):]
	w.mu.Unlock()
	for _, e := range healing {
		e.Phase, e.Detail, e.Seconds = record.Recovered, "", now.Sub(e.At).Seconds()
		e.At = now
		w.stage.note(e)
		w.stage.log.Info("recovered", "n", e.Fault, "kind", e.Kind, "after", seconds(time.Duration(e.Seconds*float64(time.Second))))
	}
}

// upToDate reports whether no message has waited for long.
func (w *watch) upToDate(ctx context.Context) bool {
	const limit = 20_000
	var b record.Backlog
	err := w.ask(ctx, func(ctx context.Context, db *pgx.Conn) (err error) {
		b, err = backlog(ctx, db, limit)
		return err
	})
	return err == nil && b.Messages < limit && (b.Messages == 0 || b.OldestSeconds < fresh.Seconds())
}

// collected reports whether collectors have seen everything that has had an effect. A collector
// that has lost its broker lags behind.
func (w *watch) collected(ctx context.Context) bool {
	var effects map[string]int64
	err := w.ask(ctx, func(ctx context.Context, db *pgx.Conn) (err error) {
		effects, err = work.Effects(ctx, db)
		return err
	})
	for destination, n := range w.stage.collectors.Counts() {
		if n < effects[destination] {
			return false
		}
	}
	return err == nil
}

// left returns what is still pending.
func (w *watch) left(ctx context.Context) (left work.Waiting, err error) {
	err = w.ask(ctx, func(ctx context.Context, db *pgx.Conn) (err error) {
		left, err = work.Look(ctx, db)
		return err
	})
	return left, err
}

// firstDeferred describes what keeps the deferred messages of each key.
func (w *watch) firstDeferred(ctx context.Context) (lines []string) {
	err := w.ask(ctx, func(ctx context.Context, db *pgx.Conn) (err error) {
		lines, err = work.FirstDeferred(ctx, db)
		return err
	})
	if err != nil {
		lines = append(lines, "cannot look at the deferred messages: "+err.Error())
	}
	return lines
}
