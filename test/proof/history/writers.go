package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
)

// Plan is how the writers write.
type Plan struct {
	Writers  int           // concurrent transactions
	Keys     int           // ordering keys that they share
	Messages int64         // stop after about this many; 0: only when stopped
	Pause    time.Duration // longest pause inside a transaction, before and after the insert
	Pauses   float64       // probability of each pause
	Bulk     int           // largest number of messages in one transaction
	Shapes   []Shape       // ways of writing; nil: all
	Async    bool          // commit without waiting for the disk, so that a crash can undo commits
}

// Writers are the producers of one history.
type Writers struct {
	plan   Plan
	pool   *pgxpool.Pool
	cfg    postgres.Config
	outbox *postgres.Outbox

	enqueued atomic.Int64
	errors   atomic.Int64
	stop     chan struct{}
	once     sync.Once
	running  sync.WaitGroup
}

// Setup creates the tables that writers use in addition to the messages.
func Setup(ctx context.Context, pool *pgxpool.Pool, cfg postgres.Config, keys int) error {
	_, err := pool.Exec(ctx, fmt.Sprintf(`
		CREATE TABLE %[1]s.facts (id uuid NOT NULL, key text NOT NULL, n bigint NOT NULL);
		CREATE TABLE %[1]s.keys (key text PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 20);
		CREATE TABLE %[1]s.other (i int);
		INSERT INTO %[1]s.keys SELECT 'k' || i, 0 FROM generate_series(1, %[2]d) i;`,
		cfg.Schema, keys), pgx.QueryExecModeSimpleProtocol)
	return err
}

// Start runs the writers until the plan is fulfilled, [Writers.Stop] is called or ctx ends.
func Start(ctx context.Context, pool *pgxpool.Pool, cfg postgres.Config, plan Plan) (*Writers, error) {
	db, err := postgres.Open(pool, cfg)
	if err != nil {
		return nil, err
	}
	if plan.Shapes == nil {
		plan.Shapes = AllShapes
	}
	w := &Writers{plan: plan, pool: pool, cfg: cfg, outbox: db.Outbox(), stop: make(chan struct{})}
	for range plan.Writers {
		w.running.Go(func() { w.write(ctx) })
	}
	return w, nil
}

// Stop makes the writers finish their transactions, and waits for that.
func (w *Writers) Stop() {
	w.once.Do(func() { close(w.stop) })
	w.running.Wait()
}

// Wait waits until the plan is fulfilled.
func (w *Writers) Wait() { w.running.Wait() }

// Enqueued returns how many messages were enqueued so far, committed or not.
func (w *Writers) Enqueued() int64 { return w.enqueued.Load() }

// Errors returns how many transactions the server has failed.
func (w *Writers) Errors() int64 { return w.errors.Load() }

func (w *Writers) done(ctx context.Context) bool {
	select {
	case <-w.stop:
		return true
	default:
		return ctx.Err() != nil || w.plan.Messages > 0 && w.enqueued.Load() >= w.plan.Messages
	}
}

var errRollback = errors.New("rolled back on purpose")

func (w *Writers) write(ctx context.Context) {
	for !w.done(ctx) {
		err := w.transaction(ctx)
		if err != nil && !errors.Is(err, errRollback) && ctx.Err() == nil {
			w.errors.Add(1) // a crashed server; facts has the outcome of the transaction
			pauseFor(ctx, 20*time.Millisecond)
		}
	}
}

// transaction writes some messages in one transaction. One in ten is rolled back.
func (w *Writers) transaction(ctx context.Context) error {
	shape := w.plan.Shapes[rand.IntN(len(w.plan.Shapes))]
	if shape == Prepared {
		return w.prepared(ctx)
	}
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := w.body(ctx, tx, shape); err != nil {
			return err
		}
		if rand.IntN(10) == 0 {
			return errRollback
		}
		return nil
	})
}

// body runs the transaction between begin and commit.
func (w *Writers) body(ctx context.Context, tx pgx.Tx, shape Shape) error {
	if w.plan.Async {
		if err := w.exec(ctx, tx, "SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
	}
	if rand.IntN(2) == 0 { // assign the transaction ID long before the sequence number
		if err := w.exec(ctx, tx, "INSERT INTO @.other VALUES (1)"); err != nil {
			return err
		}
	}
	w.pause(ctx)
	if rand.IntN(4) == 0 { // a savepoint that is rolled back
		savepoint, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if err := w.insert(ctx, savepoint, OneByOne); err != nil {
			return err
		}
		w.pause(ctx)
		if err := savepoint.Rollback(ctx); err != nil {
			return err
		}
	}
	if err := w.insert(ctx, tx, shape); err != nil {
		return err
	}
	w.pause(ctx)
	return nil
}

func (w *Writers) pause(ctx context.Context) {
	if w.plan.Pause > 0 && rand.Float64() < w.plan.Pauses {
		pauseFor(ctx, rand.N(w.plan.Pause))
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
