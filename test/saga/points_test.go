package saga

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/saga"
)

// TestEveryStatement cuts the connection at every single statement of a saga of five steps, from the transaction that starts it to
// the last one, for one that succeeds and for one that fails in step four; once so that the statement is not sent, and once
// so that it is executed and nobody hears of it.
func TestEveryStatement(t *testing.T) {
	w := newWorld(t)
	for _, fails := range []string{"", "insurance"} {
		for _, how := range []cutting{before, unheard} {
			points := enumerate(func(at int) bool {
				return w.runCut(t, fmt.Sprintf("%s%d.%d", fails, len(how), at), fails, how, at)
			})
			t.Logf("failing step %q, %s: %d points", fails, how, points)
			if points < 40 {
				t.Errorf("only %d points: are the statements seen?", points)
			}
		}
	}
}

// enumerate calls run with 1, 2, 3 and so on, several at once, until it returns false: there is nothing left to cut. It returns how
// often there was.
func enumerate(run func(at int) bool) (points int) {
	var group sync.WaitGroup
	var mu sync.Mutex
	whole := false // a run has gone through without a cut
	slots := make(chan struct{}, 10)
	for at := 1; ; at++ {
		slots <- struct{}{}
		mu.Lock()
		end := whole
		mu.Unlock()
		if end {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			cut := run(at)
			mu.Lock()
			defer mu.Unlock()
			if cut {
				points++
			}
			whole = whole || !cut
		})
	}
	group.Wait()
	return points
}

// runCut runs one saga, with one cut, to its end.
func (w *world) runCut(t *testing.T, id, fails string, how cutting, at int) bool {
	k := &knife{at: int64(at), how: how.cut}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cut, err := openWorld(ctx, w.dsn, w.schema, k)
	if err != nil {
		t.Error(err)
		return true
	}
	defer cut.pool.Close()
	err = cut.start(ctx, id, trip{Fails: fails})
	if err != nil && k.fired.Load() { // nobody knows whether it was started: that is what the ID is for
		err = cut.start(ctx, id, trip{Fails: fails})
	}
	if err != nil && !errors.Is(err, saga.ErrExists) {
		t.Errorf("%s: %v", id, err)
		return true
	}
	if err := cut.runUntilFinished(ctx, w, id); err != nil {
		t.Errorf("%s: %v", id, err)
		return true
	}
	statement, _ := k.last.Load().(string)
	w.mustBeWhole(t, id, fmt.Sprintf("cut at %d (%s), %s", at, statement, how), fails)
	return k.fired.Load()
}

// start opens the account and starts the saga in one transaction.
func (w *world) start(ctx context.Context, id string, data trip) error {
	five, err := w.fiveSteps(id)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if err := five.Start(ctx, tx, id, data); err != nil {
			return err
		}
		return w.open(ctx, tx, id)
	})
}

// runUntilFinished runs a saga until others see that it is finished.
func (w *world) runUntilFinished(ctx context.Context, others *world, id string) error {
	five, err := w.fiveSteps(id)
	if err != nil {
		return err
	}
	r, err := saga.NewRunner(saga.Config{Concurrency: 1, Poll: 5 * time.Millisecond, Logger: quiet()}, five)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	defer func() {
		stop()
		<-ended
	}()
	for {
		i, err := others.sagas.Show(ctx, id, id)
		if err == nil && i.Status.Finished() {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("not finished: %w, %w", ctx.Err(), err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
