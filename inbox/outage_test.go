package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/retry"
)

var errProvider = errors.New("the payment provider is down")

// TestProviderIsDownForTenMinutes checks that an inbox with default settings survives an outage of
// a system that its handler calls, whether or not the handler marks its error as an outage: there
// are no dead letters, and all messages are handled in order.
func TestProviderIsDownForTenMinutes(t *testing.T) {
	const (
		keys       = 50
		begin, end = time.Minute, 11 * time.Minute
		minutes    = 12
	)
	rate := 4 // messages a second
	if need.IsLong() {
		rate = 20
	}
	for name, fault := range map[string]error{
		"unavailable": postrider.Unavailable(errProvider),
		"asks for it": postrider.RetryAfter(errProvider, 10*time.Second),
		"unknown":     errProvider,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newFixture(t, inbox.Config{})
				began := time.Now()
				var mu sync.Mutex
				calls, handled, next := 0, 0, make(map[string]int)
				h.Handle("t", func(_ context.Context, _ tx, m postrider.Message) error {
					mu.Lock()
					defer mu.Unlock()
					if d := time.Since(began); d >= begin && d < end {
						calls++
						return fault
					}
					handled++
					key, n, _ := strings.Cut(string(m.Payload), " ")
					if n != strconv.Itoa(next[key]) {
						t.Errorf("key %s: %s comes when %d is next", key, n, next[key])
					}
					next[key]++
					return nil
				})
				stop := h.run()
				count := rate * 60 * minutes
				for n := range count {
					h.receive(message(fmt.Sprint("k", n%keys), fmt.Sprintf("%d %d", n%keys, n/keys)))
					time.Sleep(time.Second / time.Duration(rate))
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				stop()
				s := h.Stats()
				if s.Dead != 0 || int(s.Handled) != count || handled != count || len(h.deadLetters()) != 0 {
					t.Errorf("%d handled, %+v, want %d", handled, s, count)
				}
				t.Logf("%d calls during the outage, %+v", calls, s)
			})
		})
	}
}

// TestOutageCountsNothing checks that attempts during an outage are not counted, that their backoff
// grows up to its maximum, and that a message still becomes a dead letter at its maximum age.
func TestOutageCountsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Retry: retry.Policy{First: time.Second, Most: 8 * time.Second, Attempts: 2, MaxAge: time.Minute}})
		var mu sync.Mutex
		var pauses []time.Duration
		last := time.Now()
		var up atomic.Bool
		h.Handle("t", func(_ context.Context, _ tx, m postrider.Message) error {
			if string(m.Payload) != "m" {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			if !up.Load() {
				return postrider.Unavailable(errProvider)
			}
			return errHandler
		})
		stop := h.run()
		h.receive(message("k", "m"))
		h.receive(message("k", "behind"))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		h.wantDeadLetters("m retry", "behind waiting")
		if d := h.deadLetters()[0]; d.Attempts != 0 || d.LastError != errProvider.Error() {
			t.Errorf("%+v", d)
		}
		mu.Lock()
		if len(pauses) < 5 {
			t.Fatalf("pauses are %v", pauses)
		}
		for n, p := range pauses[1:] {
			if p < time.Second || p > 8*time.Second || n > 0 && p < pauses[n] && p < 8*time.Second {
				t.Errorf("pauses are %v, want them to grow from 1 to 8 s", pauses)
			}
		}
		mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		h.wantDeadLetters("m dead", "behind waiting")
		if d := h.deadLetters()[0]; d.Attempts != 0 {
			t.Errorf("%+v", d)
		}

		// Failures of the message itself count, before and after an outage.
		h.receive(message("l", "m"))
		time.Sleep(10 * time.Second)
		up.Store(true)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		h.wantDeadLetters("m dead", "behind waiting", "m dead")
		if d := h.deadLetters()[2]; d.Attempts != 2 || d.LastError != errHandler.Error() {
			t.Errorf("%+v", d)
		}
		stop()
	})
}
