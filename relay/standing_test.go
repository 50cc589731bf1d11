package relay_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// TestHotKey: with a publisher that does not keep order, each message of a key takes its own call,
// but other keys do not wait for it, wherever they are in the shard.
func TestHotKey(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const hot, others = 1500, 1500
		w := newWorld(t, 1)
		begin := time.Now()
		s := &sink{w: w, delay: func() time.Duration { return time.Millisecond }}
		for range hot {
			w.commit("hot")
		}
		for i := range others {
			w.commit("k" + strconv.Itoa(i))
		}
		r := start(t, w.store, s, relay.Config{})
		w.await(time.Minute)
		r.stop()
		w.check()
		w.checkNothingRepeated()
		if n := s.called(); n != hot {
			t.Errorf("%d calls, want one for each message of the hot key", n)
		}
		for i := range others {
			if at := w.received["k"+strconv.Itoa(i)][0].at.Sub(begin); at > 20*time.Millisecond {
				t.Fatalf("the key of message %d has waited for %v", i, at)
			}
		}
	})
}

// tooManyError is an error with a retry delay.
type tooManyError time.Duration

func (tooManyError) Error() string               { return "too many requests" }
func (e tooManyError) RetryAfter() time.Duration { return time.Duration(e) }
func asIs(err error) error                       { return err }
func wrapped(err error) error                    { return fmt.Errorf("the server says: %w", err) }

// ledger records when each key was sent.
type ledger struct {
	mu    sync.Mutex
	begin time.Time
	at    map[string][]time.Duration
}

func newLedger() *ledger { return &ledger{begin: time.Now(), at: make(map[string][]time.Duration)} }

func (l *ledger) note(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[key] = append(l.at[key], time.Since(l.begin))
}

func (l *ledger) times(key string) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[key]
}

// TestRetryAfter: a message whose error requests a delay waits for it, up to five minutes, and
// other keys do not.
func TestRetryAfter(t *testing.T) {
	for _, class := range []struct {
		name string
		mark func(error) error
	}{
		{"unknown", asIs}, {"wrapped", wrapped},
		{"unavailable", postrider.Unavailable}, {"permanent", postrider.Permanent},
	} {
		for _, keepsOrder := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s/%v", class.name, keepsOrder), func(t *testing.T) {
				w := newWorld(t, 1)
				l := newLedger()
				retryAfters := map[string]time.Duration{"k1": 30 * time.Second, "k2": time.Hour, "k3": -time.Hour}
				s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
					l.note(m.Key)
					if retryAfter, ok := retryAfters[m.Key]; ok {
						return class.mark(tooManyError(retryAfter)), false
					}
					return nil, true
				}}
				w.commitMany(40, 8)
				r := start(t, w.store, s, relay.Config{})
				time.Sleep(20 * time.Minute)
				for key, limits := range map[string][2]time.Duration{
					"k1": {30 * time.Second, 35 * time.Second},
					"k2": {5 * time.Minute, 5*time.Minute + 5*time.Second},
					"k3": {100 * time.Millisecond, 12 * time.Second}, // it waits a little for the others that fail
				} {
					at := l.times(key)
					if len(at) < 4 {
						t.Fatalf("%s was tried %d times", key, len(at))
					}
					for i := 1; i < len(at); i++ {
						if gap := at[i] - at[i-1]; gap < limits[0] || gap > limits[1] {
							t.Errorf("%s was tried again after %v, want %v", key, gap, limits)
							break
						}
					}
				}
				if _, distinct, _ := w.counts(); distinct != 25 {
					t.Errorf("%d messages were received, want those of 5 keys", distinct)
				}
				if at := l.times("k0"); at[len(at)-1] > 5*time.Second {
					t.Errorf("another key was held up until %v", at[len(at)-1])
				}
				r.cancel()
				<-r.done
			})
		}
	}
}

// TestOutageIsNoStorm: during an outage a worker does not try its whole read-ahead, and it continues
// within 5 s of the recovery.
func TestOutageIsNoStorm(t *testing.T) {
	for _, batch := range []int{1, 10, 500} {
		for name, mark := range map[string]func(error) error{"unknown": asIs, "unavailable": postrider.Unavailable} {
			for _, keepsOrder := range []bool{false, true} {
				bubble(t, fmt.Sprintf("%s/%d/%v", name, batch, keepsOrder), func(t *testing.T) {
					w := newWorld(t, 1)
					var up atomic.Bool
					s := &sink{w: w, keepsOrder: keepsOrder, fail: func(*postrider.Message) (error, bool) {
						if up.Load() {
							return nil, true
						}
						return mark(errOdd), false
					}}
					w.commitMany(4000, 2000)
					r := start(t, w.store, s, relay.Config{BatchSize: batch})
					time.Sleep(10 * time.Second)
					if n := s.called(); n < 5 || n > 10 { // after 0.1, 0.3, 0.7, 1.5, 3.1, 5.1, 7.1, 9.1 s, or later
						t.Errorf("%d calls in the first 10 s", n)
					}
					before := s.called()
					time.Sleep(10 * time.Minute)
					if n := s.called() - before; n > 300 {
						t.Errorf("%d calls in 10 minutes", n)
					}
					up.Store(true)
					w.await(5 * time.Second)
					r.stop()
					w.check()
					w.checkNothingRepeated()
				})
			}
		}
	}
}

// TestPlainErrorsOfSome: errors without a class that do not affect all messages are no outage,
// however small the calls.
func TestPlainErrorsOfSome(t *testing.T) {
	for _, batch := range []int{1, 10} {
		bothModes(t, func(t *testing.T, keepsOrder bool) {
			w := newWorld(t, 1)
			s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
				if m.Key == "k3" || m.Key == "k4" {
					return errOdd, false
				}
				return nil, true
			}}
			w.commitMany(1000, 10)
			r := start(t, w.store, s, relay.Config{BatchSize: batch})
			time.Sleep(time.Second)
			if _, distinct, _ := w.counts(); distinct != 800 {
				t.Errorf("%d messages were received, want all but those of 2 keys", distinct)
			}
			// Later, a new message does not wait for the earlier failure.
			time.Sleep(10*time.Minute + 123*time.Millisecond)
			for range 20 {
				w.commit("k0")
				time.Sleep(777 * time.Millisecond)
			}
			r.cancel()
			<-r.done
			if n := len(w.received["k0"]); n != 120 {
				t.Errorf("%d messages of k0 were received, want 120", n)
			}
		})
	}
}

// TestStopRepeatsNothing: a stopping relay sends nothing more, and defers failed messages in front
// of confirmed ones, so that none of these is sent again.
func TestStopRepeatsNothing(t *testing.T) {
	for name, err := range map[string]error{
		"unavailable": postrider.Unavailable(errOdd), "name": postrider.NameUnavailable(errOdd), "unknown": errOdd, "permanent": postrider.Permanent(errOdd),
		"held": postrider.Unavailable(tooManyError(time.Minute)),
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 1)
				l := newLedger()
				failed := make(chan struct{})
				s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
					l.note(m.Key)
					if m.Key == "k4" && len(l.times("k4")) == 1 {
						close(failed)
						time.Sleep(time.Millisecond) // let the stop begin
						return err, false
					}
					return nil, true
				}}
				w.commitMany(100, 100)
				r := start(t, w.store, s, relay.Config{BatchSize: 10})
				<-failed
				begin := time.Now()
				r.stop()
				if took := time.Since(begin); took > time.Second {
					t.Errorf("the stop took %v", took)
				}
				for i := range 100 {
					if n := len(l.times("k" + strconv.Itoa(i))); (n == 1) != (i < 10) {
						t.Errorf("message %d was sent %d times", i, n)
					}
				}
				if got := r.Stats(); got.Published != 9 || got.Deferred != 1 {
					t.Errorf("stats %+v, want 9 published and one deferred", got)
				}
				r = start(t, w.store, s, relay.Config{})
				w.await(2 * time.Minute)
				r.stop()
				w.check()
				w.checkNothingRepeated()
			})
		})
	}
}

// TestManyCulprits: with a handler that stops at the first failure of a call, every message that
// does not fail by itself is delivered, however many before it always fail, also one that has
// failed once.
func TestManyCulprits(t *testing.T) {
	for name, mark := range map[string]func(error) error{"unknown": asIs, "permanent": postrider.Permanent} {
		for _, batch := range []int{1, 10, 500} {
			bubble(t, fmt.Sprintf("%s/%d", name, batch), func(t *testing.T) {
				w := newWorld(t, 1)
				once := true
				handler := postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
					if seq, _ := strconv.Atoi(string(m.Payload)); seq == 0 && len(m.Key) == 2 { // k0 to k9
						return mark(errOdd)
					}
					if m.Key == "k50" && once {
						once = false
						return mark(errOdd)
					}
					w.receive(&m, "")
					return nil
				})
				w.commitMany(1000, 100)
				r := start(t, w.store, handler, relay.Config{BatchSize: batch})
				time.Sleep(time.Minute)
				if _, distinct, _ := w.counts(); distinct != 900 {
					t.Errorf("%d messages were received, want those of 90 keys", distinct)
				}
				r.cancel()
				<-r.done
			})
		}
	}
}

// TestYieldInSpiteOfFailure: a message that always fails does not keep its shard from moving to
// another relay.
func TestYieldInSpiteOfFailure(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 2)
		s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			if m.Key == "k0" || m.Key == "k1" || m.Key == "k2" || m.Key == "k3" { // of both shards
				return errOdd, false
			}
			return nil, true
		}}
		w.commitMany(400, 40)
		a := start(t, w.store, s, relay.Config{})
		time.Sleep(10 * time.Second)
		b := start(t, w.store, s, relay.Config{})
		time.Sleep(15 * time.Second)
		checkShare(t, []*running{a, b}, 2)
		if _, distinct, _ := w.counts(); distinct != 360 {
			t.Errorf("%d messages were received, want those of 36 keys", distinct)
		}
		a.cancel()
		b.cancel()
		<-a.done
		<-b.done
	})
}
