package intake_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/retry"
)

// TestFailingKeyHoldsNobodyUp fills every slot with messages of a key that fails or panics. Other
// keys must continue.
func TestFailingKeyHoldsNobodyUp(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("no") },
		"panic": func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var counters intake.Counters
				in := intake.Open(ctx, func(_ context.Context, m postrider.Message) error {
					if m.Key == "bad" {
						return fail()
					}
					return nil
				}, intake.Config{Limit: 2, Counters: &counters, Logger: quiet})
				begin := time.Now()
				for n := range 64 {
					accept(in, message("bad", n), func() { t.Error("done") })
				}
				var done atomic.Int32
				for n := range 1000 {
					accept(in, message([]string{"", "a", "b"}[n%3], n), func() { done.Add(1) })
				}
				synctest.Wait()
				if done.Load() != 1000 || time.Since(begin) != 0 {
					t.Errorf("%d of 1000 others are done after %v", done.Load(), time.Since(begin))
				}
				if got, want := counters.Stats(), (intake.Stats{Waiting: 64, Failing: 1, Failures: 1}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				cancel()
				in.Wait()
				if got, want := counters.Stats(), (intake.Stats{Failures: 1}); got != want {
					t.Errorf("in the end got %+v, want %+v", got, want)
				}
			})
		})
	}
}

// TestExhausted uses up the attempts of a message, with and without a dead-letter destination.
func TestExhausted(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		buries  bool
		calls   int // handler calls within an hour
		stopped int64
		dead    int64
	}{
		{"dead letter", errors.New("no"), true, 3, 0, 1},
		{"dead letter at once", postrider.Permanent(errors.New("never")), true, 1, 0, 1},
		{"not the message's fault", postrider.Unavailable(errors.New("down")), true, 3 + 120, 0, 0},
		{"stopped", errors.New("no"), false, 3 + 119, 1, 0},
		{"stopped at once", postrider.Permanent(errors.New("never")), false, 120, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var counters intake.Counters
				var log strings.Builder
				cfg := intake.Config{
					Retry:    retry.Policy{Attempts: 3, Pauses: []time.Duration{time.Second, 2 * time.Second, 30 * time.Second}},
					Counters: &counters, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				}
				dead := memory.New()
				if c.buries {
					cfg.DeadLetters = intake.DeadLetters{Publisher: dead, Name: "graveyard"}
				}
				calls, fails := 0, true
				var mu sync.Mutex
				in := intake.Open(ctx, func(_ context.Context, m postrider.Message) error {
					mu.Lock()
					defer mu.Unlock()
					if string(m.Payload) == "0" && fails {
						calls++
						return c.err
					}
					return nil
				}, cfg)
				var done []int
				first := message("k", 0)
				first.Topic = "orders"
				for n, m := range []postrider.Message{first, message("k", 1)} {
					accept(in, m, func() { done = append(done, n) })
				}
				time.Sleep(time.Hour - time.Millisecond)
				synctest.Wait()
				s := counters.Stats()
				if calls != c.calls || s.Stopped != c.stopped || s.Dead != c.dead || int64(len(done)) != 2*c.dead {
					t.Errorf("%d calls, done %v, %+v", calls, done, s)
				}
				if told := strings.Count(log.String(), "is blocked until"); int64(told) != c.stopped {
					t.Errorf("the log was told %d times that the key has stopped", told)
				}
				for _, m := range dead.Messages() {
					if m.Topic != "graveyard" || m.Headers[intake.HeaderDeadFrom] != "orders" || m.Headers[intake.HeaderDeadAttempts] == "" ||
						m.Headers[intake.HeaderDeadError] != c.err.Error() || m.Repetition == "" {
						t.Errorf("the dead letter is %+v", m)
					}
				}
				mu.Lock()
				fails = false
				mu.Unlock()
				time.Sleep(time.Minute) // the key continues as soon as the fault ends
				synctest.Wait()
				if s := counters.Stats(); !slices.Equal(done, []int{0, 1}) || s.Stopped != 0 || s.Failing != 0 || s.Waiting != 0 {
					t.Errorf("in the end %v are done, %+v", done, s)
				}
				cancel()
				in.Wait()
			})
		})
	}
}

// TestPanicIsLoggedOnce: the log has the stack of a panic, but not again for each attempt.
func TestPanicIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var log strings.Builder
		in := intake.Open(ctx, func(context.Context, postrider.Message) error { panic("broken") }, intake.Config{
			Retry: retry.Policy{Attempts: 3, First: time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		accept(in, message("k", 0), func() {})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		cancel()
		in.Wait()
		if stacks, all := strings.Count(log.String(), "stack="), strings.Count(log.String(), "broken"); stacks != 1 || all < 3 {
			t.Errorf("%d of %d lines have a stack:\n%s", stacks, all, log.String())
		}
	})
}

// TestDeadLetterRefused checks that a message is kept if the dead-letter destination refuses it.
func TestDeadLetterRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		dead, refused := memory.New(), 0
		dead.Fail(func(postrider.Message) error {
			if refused++; refused < 3 {
				return postrider.Unavailable(errors.New("down"))
			}
			return nil
		})
		in := intake.Open(ctx, func(context.Context, postrider.Message) error { return errors.New("line one\nline two") },
			intake.Config{Retry: retry.Policy{Attempts: 1}, DeadLetters: intake.DeadLetters{Publisher: dead, Name: "graveyard"}, Logger: quiet})
		var done atomic.Bool
		accept(in, message("k", 0), func() { done.Store(true) })
		synctest.Wait()
		if done.Load() {
			t.Error("a message is done that nobody has")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		got := dead.Messages()
		if !done.Load() || len(got) != 1 || got[0].Headers[intake.HeaderDeadError] != "line one line two" {
			t.Errorf("done: %v, dead letters: %+v", done.Load(), got)
		}
		cancel()
		in.Wait()
	})
}

// TestReturn gives failing messages back to a broker that handles the backoff itself.
func TestReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		no := errors.New("no")
		in := intake.Open(ctx, func(context.Context, postrider.Message) error { return no }, intake.Config{Logger: quiet})
		var pauses []time.Duration
		for _, failures := range []int{0, 1, 4, 9} {
			in.Accept(intake.Delivery{
				Message: message("k", 0), Failures: failures, Done: func() { t.Error("done") },
				Return: func(err error, pause time.Duration) {
					if !errors.Is(err, no) {
						t.Error(err)
					}
					pauses = append(pauses, pause)
				},
			})
		}
		synctest.Wait()
		ms := time.Millisecond
		for i, least := range []time.Duration{100 * ms, 200 * ms, 1600 * ms, 30 * time.Second} {
			if pauses[i] < least || pauses[i] > min(least*3/2, 30*time.Second) {
				t.Errorf("pause %d is %v, want %v and up to half as much more", i, pauses[i], least)
			}
		}
		cancel()
		in.Wait()
	})
}

// TestDrop drops a part: waiting messages must never start, running handlers must be cancelled and
// waited for, and the other part must continue.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var counters intake.Counters
		var mu sync.Mutex
		begun, ended := map[string]int{}, map[string]int{}
		count := func(m map[string]int, key string) {
			mu.Lock()
			defer mu.Unlock()
			m[key]++
		}
		counted := func(m map[string]int) map[string]int {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(m)
		}
		in := intake.Open(ctx, func(ctx context.Context, m postrider.Message) error {
			count(begun, m.Key)
			defer count(ended, m.Key)
			if m.Key == "fails" {
				return errors.New("no")
			}
			select {
			case <-ctx.Done():
				time.Sleep(time.Second) // to clean up
				return ctx.Err()
			case <-time.After(time.Minute):
				return nil
			}
		}, intake.Config{Limit: 3, Counters: &counters, Logger: quiet})
		lost, kept := in.Part(), in.Part()
		var done atomic.Int64
		for range 5 {
			lost.Accept(intake.Delivery{Message: message("runs", 0), Done: func() { t.Error("done") }})
			lost.Accept(intake.Delivery{Message: message("fails", 0), Done: func() { t.Error("done") }})
		}
		kept.Accept(intake.Delivery{Message: message("kept", 0), Done: func() { done.Add(1) }})
		synctest.Wait()
		begin := time.Now()
		if !lost.Drop(time.Minute) || time.Since(begin) != time.Second {
			t.Errorf("dropped after %v", time.Since(begin))
		}
		before := counted(begun)
		if before["runs"] != 1 || counted(ended)["runs"] != 1 {
			t.Errorf("begun %v, ended %v", before, counted(ended))
		}
		if lost.Accept(intake.Delivery{Message: message("", 0)}) {
			t.Error("a dropped part accepts a message")
		}
		time.Sleep(2 * time.Minute)
		if now := counted(begun); now["runs"] != 1 || now["fails"] != before["fails"] || done.Load() != 1 {
			t.Errorf("begun %v, %d of the other part are done", now, done.Load())
		}
		if s := counters.Stats(); s.Waiting != 0 || s.Failing != 0 {
			t.Errorf("%+v", s)
		}
		stubborn := in.Part()
		stubborn.Accept(intake.Delivery{Message: message("k", 0)})
		synctest.Wait()
		if stubborn.Drop(time.Millisecond) {
			t.Error("Drop says that a handler has returned that has not")
		}
		cancel()
		in.Wait()
	})
}
