package producer

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/test/proof/campaign/work"
)

// chunk is how many messages a large transaction writes at a time.
const chunk = 5000

// Hot writes messages of one key of a destination until stop is called: several times as many as
// all other producers write there.
func Hot(ctx context.Context, plan work.Plan, destination string, log *slog.Logger) (stop func(), err error) {
	p, err := New(ctx, plan, log)
	if err != nil {
		return nil, err
	}
	p.pace.rate = 6 * plan.Rate / float64(len(plan.Destinations))
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer p.close()
		keys := []want{{destination, work.HotKey(destination), 5}}
		for p.pace.wait(ctx, 5) {
			// A transaction that fails is rolled back, and the numbers of its messages with it.
			if err := p.transaction(context.WithoutCancel(ctx), p.pools[0], Together, keys); err != nil {
				sleep.For(ctx, p.plan.Pause)
			}
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// Many writes n messages of a destination in one transaction, which stays open until end is called.
// The end of its session rolls it back.
func Many(ctx context.Context, plan work.Plan, destination string, n int, log *slog.Logger) (end func(ctx context.Context, commit bool) error, err error) {
	return many(ctx, plan, n, log, func(i int) want { return want{destination, work.BulkKey(destination, i), chunk / work.Bulk} })
}

// Flood commits n messages of one tenant of a destination at once.
func Flood(ctx context.Context, plan work.Plan, destination string, n int, log *slog.Logger) error {
	end, err := many(ctx, plan, n, log, func(i int) want {
		return want{destination, work.FloodKey(destination, i%work.Flood), chunk / work.Bulk}
	})
	if err != nil {
		return err
	}
	return end(ctx, true)
}

func many(ctx context.Context, plan work.Plan, n int, log *slog.Logger, key func(int) want) (end func(ctx context.Context, commit bool) error, err error) {
	p, err := New(ctx, plan, log)
	if err != nil {
		return nil, err
	}
	tx, err := p.pools[0].Begin(ctx)
	if err != nil {
		p.close()
		return nil, err
	}
	for number := 0; n > 0 && err == nil; {
		var keys []want
		for i := 0; i < work.Bulk && n > 0; i++ {
			w := key(number)
			w.count = min(w.count, n)
			keys = append(keys, w)
			n -= w.count
			number = (number + 1) % work.Bulk
		}
		err = p.insert(ctx, tx, Bulk, keys)
	}
	end = func(ctx context.Context, commit bool) error {
		defer p.close()
		if commit {
			return tx.Commit(ctx)
		}
		return tx.Rollback(ctx)
	}
	if err != nil {
		_ = end(context.WithoutCancel(ctx), false) // the first error says more
		return nil, err
	}
	return end, nil
}

// As commits a message of a destination for each of the given IDs.
func As(ctx context.Context, plan work.Plan, destination string, ids []string, log *slog.Logger) error {
	p, err := New(ctx, plan, log)
	if err != nil {
		return err
	}
	defer p.close()
	return pgx.BeginFunc(ctx, p.pools[0], func(tx pgx.Tx) error {
		facts, err := p.number(ctx, tx, []want{{destination, work.Key(destination, 0), len(ids)}}, work.NewFact)
		if err != nil {
			return err
		}
		for i := range facts {
			facts[i].ID = ids[i]
		}
		if err := record(ctx, tx, facts); err != nil {
			return err
		}
		return p.enqueue(ctx, tx, facts, Together)
	})
}
