package saga_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/memory"
)

func TestDeclarationReportsAllMistakes(t *testing.T) {
	type tx = *memory.Tx
	fine := func(context.Context, tx, *int) error { return nil }
	sagas := memory.Open(memory.Config{}).Sagas()
	_, err := saga.New(sagas, "",
		saga.Step("a", fine, nil).Timeout(-1).UndoFailed(),
		saga.Step[tx, int]("b", nil, nil),
		saga.Step("a", fine, fine).Within(time.Second),
		saga.Parallel(saga.Step("c\n", fine, fine).Retry(retry.Policy{Attempts: -2, First: time.Hour, Most: time.Minute})),
		saga.Wait("d", func(context.Context, tx, *int, int) error { return nil }, nil).Within(-1).RetryUndo(retry.Policy{First: -1}))
	for _, want := range []string{
		"the saga has no name", "a timeout of -1ns", "UndoFailed wants a compensation", `step "b" has no action`, `two steps have the name "a"`,
		"Within is for steps that wait", "Parallel has less than two steps", `"c\n"`, "Attempts is -2", "First (1h0m0s) is longer than Most (1m0s)",
		"waits within -1ns", "retry of the compensation: First is negative: -1ns",
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if _, err := saga.New[tx, int](nil, "x"); err == nil || !strings.Contains(err.Error(), "no store") || !strings.Contains(err.Error(), "no steps") {
		t.Errorf("got %v", err)
	}

	g, err := saga.New(sagas, "x", saga.Step("a", fine, nil))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := saga.New(memory.Open(memory.Config{}).Sagas(), "y", saga.Step("a", fine, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = saga.NewRunner(saga.Config{Concurrency: -1, Poll: -1, Grace: -1, SlowRetry: -1}, g, g, elsewhere)
	for _, want := range []string{"Concurrency is -1", "Poll is -1ns", "Grace is -1ns", "SlowRetry is -1ns", `two sagas have the name "x"`, `"y" lies in another store`} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if _, err := saga.NewRunner[tx](saga.Config{}); err == nil {
		t.Error("a runner without sagas")
	}
}

func TestRunInProcess(t *testing.T) {
	var log []string
	word := func(w string, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			log = append(log, w)
			return errors.Join(err, ctx.Err())
		}
	}
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	for _, test := range []struct {
		steps []saga.Task
		want  string
		stuck bool
	}{
		{[]saga.Task{saga.Do("a", word("a", nil), nil), saga.Do("b", word("b", nil), word("-b", nil))}, "a b", false},
		{[]saga.Task{saga.Do("a", word("a", nil), word("-a", nil)), saga.Do("b", word("b", nil), nil), saga.Do("c", word("c", broken), word("-c", nil))}, "a b c -a", false},
		{[]saga.Task{saga.Do("a", word("a", nil), word("-a", nil)), saga.Do("b", word("b", nil), word("-b", broken)),
			saga.Do("c", func(context.Context) error { panic("oh") }, nil)}, "a b -b -b -b -a", true},
		{[]saga.Task{saga.Do("a", word("a", nil), word("-a", nil)), saga.Do("b", func(context.Context) error { cancel(); return nil }, nil),
			saga.Do("c", word("c", nil), nil)}, "a -a", false},
	} {
		log = nil
		err := saga.Run(ctx, test.steps...)
		var failed *saga.StepError
		if got := strings.Join(log, " "); got != test.want || err != nil && (!errors.As(err, &failed) || !errors.Is(err, saga.ErrStep)) {
			t.Errorf("%s: %v; want %s", got, err, test.want)
		}
		if err != nil && test.stuck != (failed.Stuck != nil && strings.Contains(err.Error(), "not undone")) {
			t.Errorf("%v", err)
		}
	}
}

// TestIdleRunnerAsksOnce checks the number of queries of an idle runner, and that starting a saga
// in its process wakes it.
func TestIdleRunnerAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Sagas: memory.Open(memory.Config{}).Sagas()}
		g, err := saga.New(store, "g", saga.Step("a", func(context.Context, *memory.Tx, *int) error { return nil }, nil))
		if err != nil {
			t.Fatal(err)
		}
		r, err := saga.NewRunner(saga.Config{Concurrency: 20}, g)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // it may be run again
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.Run(ctx) }()
			time.Sleep(time.Minute)
			store.due.Store(0)
			store.taken.Store(0)
			time.Sleep(time.Hour)
			if due := store.due.Load(); due > 3600 || due < 2500 || store.taken.Load() > 0 {
				t.Errorf("asked %d times in an hour, and %d times in transactions", due, store.taken.Load())
			}
			id := time.Now().String()
			began := time.Now()
			if err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error { return g.Start(ctx, tx, id, 0) }); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if i, err := store.Show(ctx, "g", id); err != nil || i.Status != saga.Completed || time.Since(began) > 0 {
				t.Errorf("%+v, %v after %v", i, err, time.Since(began))
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

type countingStore struct {
	*memory.Sagas
	due, taken atomic.Int64
}

func (s *countingStore) Due(ctx context.Context, known saga.Known) (time.Duration, bool, error) {
	s.due.Add(1)
	return s.Sagas.Due(ctx, known)
}

func (s *countingStore) Take(ctx context.Context, tx *memory.Tx, known saga.Known) (*saga.Instance, string, error) {
	s.taken.Add(1)
	return s.Sagas.Take(ctx, tx, known)
}

// TestPauses checks that the delays between attempts follow the policy.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open(memory.Config{}).Sagas()
		var at []time.Duration
		began := time.Now()
		g, err := saga.New(store, "g", saga.Step("a", func(context.Context, *memory.Tx, *int) error {
			at = append(at, time.Since(began).Round(time.Second))
			return errors.New("no")
		}, nil).Retry(retry.Policy{Pauses: []time.Duration{1e9, 2e9, 4e9, 5e9}, Attempts: 6}))
		if err != nil {
			t.Fatal(err)
		}
		r, err := saga.NewRunner(saga.Config{Poll: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}, g)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error { return g.Start(ctx, tx, "1", 0) }); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if want := []time.Duration{0, 1e9, 3e9, 7e9, 12e9, 17e9}; !slices.Equal(at, want) {
			t.Errorf("tried at %v, want %v", at, want)
		}
	})
}

// TestGrace checks that a step that runs longer than the grace at shutdown is interrupted, and that
// the next runner runs it again.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open(memory.Config{}).Sagas()
		runs := 0
		g, err := saga.New(store, "g", saga.Step("a", func(ctx context.Context, _ *memory.Tx, _ *int) error {
			if runs++; runs == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error { return g.Start(ctx, tx, "1", 0) }); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 2 {
			r, err := saga.NewRunner(saga.Config{Grace: 3 * time.Second}, g)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
			stop()
		}
		i, err := store.Show(t.Context(), "g", "1")
		if err != nil || i.Status != saga.Completed || i.Steps[0].Attempts != 0 || runs != 2 || time.Since(began) != 5*time.Second {
			t.Errorf("%+v, %v after %d runs and %v", i, err, runs, time.Since(began))
		}
	})
}

// TestProviderIsDownForTenMinutes checks that steps with default settings survive an outage of a
// system that they call, whether or not they mark their errors as unavailable.
func TestProviderIsDownForTenMinutes(t *testing.T) {
	for name, fault := range map[string]error{"unavailable": postrider.Unavailable(errPlanned), "unknown": errPlanned} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.Open(memory.Config{}).Sagas()
				began := time.Now()
				calls := func(context.Context, *memory.Tx, *int) error {
					if d := time.Since(began); d >= time.Minute && d < 11*time.Minute {
						return fault
					}
					return nil
				}
				refuses := func(context.Context, *memory.Tx, *int) error { return postrider.Permanent(errPlanned) }
				good, err := saga.New(store, "good", saga.Step("a", calls, calls).UndoFailed(), saga.Step("b", calls, nil))
				if err != nil {
					t.Fatal(err)
				}
				bad, err := saga.New(store, "bad", saga.Step("a", calls, calls), saga.Step("b", refuses, nil))
				if err != nil {
					t.Fatal(err)
				}
				r, err := saga.NewRunner(saga.Config{Logger: slog.New(slog.DiscardHandler)}, good, bad)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- r.Run(ctx) }()
				count, pause := 12*6, 10*time.Second
				if need.IsLong() {
					count, pause = 12*60, time.Second
				}
				for n := range count {
					if err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
						return errors.Join(good.Start(ctx, tx, fmt.Sprint(n), 0), bad.Start(ctx, tx, fmt.Sprint(n), 0))
					}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(pause)
				}
				time.Sleep(5 * time.Minute)
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				counts, err := store.Count(t.Context(), saga.Filter{})
				if err != nil || counts[saga.Completed] != count || counts[saga.Compensated] != count {
					t.Errorf("%v, %v: want %d completed and as many compensated", counts, err, count)
				}
			})
		})
	}
}
