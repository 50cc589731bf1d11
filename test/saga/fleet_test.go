package saga

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/saga"
)

// fleetSaga returns a saga with all features: parallel steps, one that waits, transient and
// permanent failures.
func (w *world) fleetSaga() (*saga.Saga[pgx.Tx, trip], error) {
	shaky := func(name string) saga.Steps[pgx.Tx, trip] {
		action, compensation := w.pays(name)
		stumble := func(f func(context.Context, pgx.Tx, *trip) error) func(context.Context, pgx.Tx, *trip) error {
			return func(ctx context.Context, tx pgx.Tx, data *trip) error {
				if err := f(ctx, tx, data); err != nil {
					return err
				}
				if rand.IntN(20) == 0 {
					return errors.New("stumbled")
				}
				return nil
			}
		}
		return saga.Step(name, stumble(action), stumble(compensation)).Retry(quick).RetryUndo(quick)
	}
	action, compensation := w.pays("insurance")
	return saga.New(w.db.Sagas(), "fleet", shaky("hotel"), saga.Parallel(shaky("flight"), shaky("car")),
		saga.Wait("insurance", func(ctx context.Context, tx pgx.Tx, data *trip, extra int) error {
			data.Extra += extra
			return action(ctx, tx, data)
		}, compensation).Within(signalTimeout).Retry(quick).RetryUndo(quick),
		shaky("payment"))
}

// work runs a worker until it is killed.
func work(ctx context.Context) error {
	w, err := openWorld(ctx, os.Getenv("WORLD_DSN"), os.Getenv("WORLD_SCHEMA"))
	if err != nil {
		return err
	}
	fleet, err := w.fleetSaga()
	if err != nil {
		return err
	}
	r, err := saga.NewRunner(saga.Config{Concurrency: 6, Poll: 50 * time.Millisecond, Logger: quiet()}, fleet)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// TestFleet runs many sagas in several processes, which are killed at random, with signals that
// come early, late, twice or never.
func TestFleet(t *testing.T) {
	count, processes := 300, 2
	if need.IsLong() {
		count, processes = 10_000, 4
	}
	w := newWorld(t)
	fleet, err := w.fleetSaga()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	var group, sent sync.WaitGroup
	kills := 0
	quit := make(chan struct{})
	end := sync.OnceFunc(func() { // also if the test fails: no process may outlive it
		close(quit)
		group.Wait()
	})
	defer end()
	group.Go(func() { kills = w.killNowAndThen(t, processes, quit) })
	signals := make(chan string, count)
	for k := range 4 {
		sent.Go(func() { w.signals(ctx, t, fleet, signals, uint64(k)) })
	}
	for n := 0; n < count; {
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			for m := n; m < min(n+20, count); m++ {
				id := fmt.Sprintf("f%d", m)
				if err := fleet.Start(ctx, tx, id, trip{Fails: []string{"", "", "", "car", "payment", "insurance"}[m%6]}); err != nil {
					return err
				}
				if err := w.open(ctx, tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for end := min(n+20, count); n < end; n++ {
			signals <- fmt.Sprintf("f%d", n)
		}
	}
	close(signals)
	sent.Wait()
	for ctx.Err() == nil && w.number(t, "SELECT count(*) FROM @.sagas WHERE finished IS NULL") > 0 {
		time.Sleep(50 * time.Millisecond)
	}
	took := time.Since(began)
	end()
	if left := w.number(t, "SELECT count(*) FROM @.sagas WHERE finished IS NULL"); left > 0 {
		t.Fatalf("%d of %d are not finished after %v", left, count, took)
	}
	for what, sql := range map[string]string{
		"effects that are there twice": `SELECT count(*) FROM (SELECT FROM @.effects GROUP BY id, step, undo HAVING count(*) > 1) t`,
		"completed sagas that are not whole": `SELECT count(*) FROM @.sagas g WHERE status = 'completed' AND
			((SELECT count(*) FROM @.effects e WHERE e.id = g.id AND NOT undo) <> 5 OR (SELECT count(*) FROM @.effects e WHERE e.id = g.id AND undo) <> 0
			OR (SELECT balance FROM @.accounts a WHERE a.id = g.id) <> 0 OR data ->> 'paid' <> '100' OR data ->> 'extra' <> '7')`,
		"compensated sagas with something left": `SELECT count(*) FROM @.sagas g WHERE status = 'compensated' AND
			((SELECT balance FROM @.accounts a WHERE a.id = g.id) <> 100 OR data ->> 'paid' <> '0' OR EXISTS (
			SELECT FROM @.effects e WHERE e.id = g.id GROUP BY step HAVING sum(amount) <> 0))`,
		"compensations out of order": `SELECT count(*) FROM @.saga_steps a JOIN @.saga_steps b USING (saga, id)
			WHERE a.undone IS NOT NULL AND b.undone IS NOT NULL AND a.completed < b.completed AND a.undone < b.undone`,
		"others": `SELECT count(*) FROM @.sagas WHERE status NOT IN ('completed', 'compensated')`,
		"messages without effect, or effects without message": `SELECT abs((SELECT count(*) FROM @.effects) - (SELECT count(*) FROM @.messages))`,
		"money made or lost": `SELECT abs((SELECT coalesce(sum(balance), 0) FROM @.accounts) + (SELECT coalesce(sum(amount), 0) FROM @.effects)
			- 100 * (SELECT count(*) FROM @.accounts))`,
	} {
		if n := w.number(t, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
	t.Logf("%d sagas in %v by %d processes with %d kills: %d completed, %d compensated, %d late signals, %d repeated, %d failed attempts at steps that are done",
		count, took.Round(time.Millisecond), processes, kills,
		w.number(t, "SELECT count(*) FROM @.sagas WHERE status = 'completed'"),
		w.number(t, "SELECT count(*) FROM @.sagas WHERE status = 'compensated'"),
		w.number(t, "SELECT count(*) FROM @.saga_signals WHERE late"),
		w.number(t, "SELECT coalesce(sum(repeats), 0) FROM @.saga_signals"),
		w.number(t, "SELECT coalesce(sum(attempts), 0) FROM @.saga_steps WHERE state = 'done'"))
	if kills == 0 {
		t.Error("nobody was killed")
	}
}

// signals sends a signal to each saga: some twice, some before the saga waits for it, some too
// late, and some never.
func (w *world) signals(ctx context.Context, t *testing.T, fleet *saga.Saga[pgx.Tx, trip], ids <-chan string, seed uint64) {
	random := rand.New(rand.NewPCG(1, seed))
	send := func(id string, times int) {
		for range times {
			err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				_, err := fleet.Signal(ctx, tx, id, "insurance", 7)
				return err
			})
			if err != nil {
				t.Errorf("signal to %s: %v", id, err)
			}
		}
	}
	var late []string
	for id := range ids {
		if random.IntN(10) == 0 {
			late = append(late, id)
			continue
		}
		send(id, []int{1, 1, 1, 2, 1, 3, 0}[random.IntN(7)])
	}
	select {
	case <-time.After(signalTimeout):
	case <-ctx.Done():
	}
	for _, id := range late {
		send(id, 2)
	}
}

// signalTimeout is how long a saga waits for its signal.
const signalTimeout = 2 * time.Second

// killNowAndThen keeps processes running and kills one of them now and then.
func (w *world) killNowAndThen(t *testing.T, processes int, quit <-chan struct{}) (kills int) {
	running := make([]*exec.Cmd, processes)
	begin := func(n int) {
		running[n] = w.worker(t)
		if err := running[n].Start(); err != nil {
			t.Error(err)
		}
	}
	kill := func(n int) {
		_ = running[n].Process.Kill()
		_ = running[n].Wait()
	}
	for n := range running {
		begin(n)
	}
	for {
		select {
		case <-quit:
			for n := range running {
				kill(n)
			}
			return kills
		case <-time.After(time.Duration(100+rand.IntN(400)) * time.Millisecond):
			n := rand.IntN(processes)
			kill(n)
			kills++
			begin(n)
		}
	}
}
