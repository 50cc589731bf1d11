package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// named is a sink whose names are the topics of messages.
type named struct{ *sink }

func (named) NameOf(m *postrider.Message) string { return m.Topic }

// commitTo writes the next message of each key to a topic.
func (w *world) commitTo(topic string, keys ...string) {
	w.commitAs(func(m *postrider.Message) { m.Topic = topic }, keys...)
}

// TestNameDown: a name that accepts nothing delays only its own messages, however many they are.
// They are deferred without counted attempts, and follow in order soon after it recovers. Restarts
// repeat nothing.
func TestNameDown(t *testing.T) {
	for name, err := range map[string]error{
		"name": postrider.NameUnavailable(errOdd), "destination": postrider.Unavailable(errOdd), "unknown": errOdd,
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 2)
				var up atomic.Bool
				s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
					if m.Topic == "full" && !up.Load() {
						return err, false
					}
					return nil, true
				}}}
				const healthy, held = 2000, 2000
				for i := range healthy {
					w.commitTo("healthy", "h"+strconv.Itoa(i%50))
					w.commitTo("full", "f"+strconv.Itoa(i%50))
				}
				cfg := relay.Config{BatchSize: 100, ReadAhead: 200}
				r := start(t, w.store, s, cfg)
				time.Sleep(5 * time.Second)
				if _, distinct, _ := w.counts(); distinct != healthy {
					t.Errorf("%d messages were received, want the %d of the healthy name", distinct, healthy)
				}
				if got := r.Stats(); got.Held != 2 || got.Dead != 0 || got.Buffered != 0 || got.Deferred != held {
					t.Errorf("stats %+v, want one held name in each shard, and all its messages deferred", got)
				}
				before := s.called()
				time.Sleep(time.Minute)
				if n := s.called() - before; n > 2*60/2+10 || n < 10 {
					t.Errorf("%d probes in a minute", n)
				}
				for range 3 {
					r.stop()
					r = start(t, w.store, s, cfg)
					w.commitTo("healthy", "h1", "h2")
					time.Sleep(5 * time.Second)
				}
				up.Store(true)
				w.await(10 * time.Second)
				time.Sleep(time.Second)
				if got := r.Stats(); got.Held != 0 || got.Blocked != 0 || got.Dead != 0 {
					t.Errorf("stats %+v, want nothing held", got)
				}
				r.stop()
				w.check()
				w.checkNothingRepeated()
				checkDeferred(w, map[feeds.Status]int{})
			})
		})
	}
}

// TestNamesGoDown: when some names stop accepting, at a rate at which most calls have one message,
// the messages of the others continue at once.
func TestNamesGoDown(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		var down atomic.Bool
		var at atomic.Int64 // when the last message of a healthy name arrived
		s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			if m.Topic < "n3" && down.Load() {
				return postrider.NameUnavailable(errOdd), false
			}
			at.Store(time.Now().UnixNano())
			return nil, true
		}}}
		r := start(t, w.store, s, relay.Config{PollMax: 5 * time.Millisecond})
		time.Sleep(time.Second)
		for i := range 1000 {
			down.Store(i > 200)
			name := fmt.Sprint("n", i*5%8)
			begun := time.Now()
			w.commitTo(name, fmt.Sprint("k", name, i%40))
			time.Sleep(30 * time.Millisecond)
			if name >= "n3" && at.Load() < begun.UnixNano() {
				t.Errorf("message %d to %s has not arrived within 30 ms", i, name)
			}
		}
		down.Store(false)
		w.await(30 * time.Second)
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// TestAllNamesGoDown: an outage of the whole destination causes no writes, even at a rate at which
// a call has one message, so that the first failures concern one name while another has just
// succeeded.
func TestAllNamesGoDown(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		var down atomic.Bool
		s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(*postrider.Message) (error, bool) {
			if down.Load() {
				return postrider.NameUnavailable(errOdd), false
			}
			return nil, true
		}}}
		r := start(t, w.store, s, relay.Config{PollMax: 5 * time.Millisecond})
		time.Sleep(time.Second)
		for i := range 500 {
			if i == 200 {
				down.Store(true)
			}
			w.commitTo(fmt.Sprint("n", i%8), fmt.Sprint("k", i%40))
			time.Sleep(30 * time.Millisecond)
		}
		if calls := s.called(); calls > 300 {
			t.Errorf("%d calls", calls)
		}
		if got := r.Stats(); got.Deferred != 0 || got.Held != 0 {
			t.Errorf("stats %+v, want nothing deferred", got)
		}
		down.Store(false)
		w.await(30 * time.Second)
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// TestHeldOfOneKey: many deferred messages of one key are sent at the pace of the destination, not
// of the store.
func TestHeldOfOneKey(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		var up atomic.Bool
		s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			if m.Topic == "full" && !up.Load() {
				return postrider.NameUnavailable(errOdd), false
			}
			return nil, true
		}}}
		const held = 500
		for range held {
			w.commitTo("full", "k")
		}
		w.commitTo("healthy", "h")
		const slow = 50 * time.Millisecond
		f := &faults{Store: w.store, hook: func(op string) error {
			if op == "Conclude" {
				time.Sleep(slow)
			}
			return nil
		}}
		r := start(t, f, s, relay.Config{})
		time.Sleep(5 * time.Second)
		up.Store(true)
		w.await(10 * time.Second)
		r.stop()
		if n := f.count("Conclude"); n > held/5 {
			t.Errorf("the store was told %d times of %d messages", n, held)
		}
		w.check()
		w.checkNothingRepeated()
	})
}

// TestHeldOverRestart: the next relay also holds the messages of a held name, even if nothing else
// succeeds, so that an operator finds them by their status.
func TestHeldOverRestart(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			if m.Topic == "missing" {
				return postrider.NameUnavailable(errOdd), false
			}
			return nil, true
		}}}
		for i := range 5 {
			w.commitTo("healthy", "h"+strconv.Itoa(i))
			w.commitTo("missing", "m"+strconv.Itoa(i))
		}
		for range 2 {
			r := start(t, w.store, s, relay.Config{})
			time.Sleep(time.Minute)
			r.stop()
			checkDeferred(w, map[feeds.Status]int{feeds.StatusHeld: 5})
		}
	})
}

// TestNameDownLater: messages that have failed by themselves before are not counted while their
// whole name accepts nothing, even if there are no others to send.
func TestNameDownLater(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		var down, up atomic.Bool
		s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			switch {
			case up.Load():
				return nil, true
			case down.Load():
				return postrider.NameUnavailable(errOdd), false
			case m.Key != "h":
				return errOdd, false
			}
			return nil, true
		}}}
		w.commitTo("full", "odd", "strange")
		r := start(t, w.store, s, relay.Config{Retry: retry.Policy{Attempts: 4, First: 10 * time.Second}})
		for range 5 {
			w.commitTo("full", "h")
			time.Sleep(time.Second)
		}
		if got := r.Stats(); got.Refused == 0 || got.Dead != 0 {
			t.Fatalf("stats %+v, want the odd messages to have failed", got)
		}
		down.Store(true)
		time.Sleep(5 * time.Minute)
		if got := r.Stats(); got.Dead != 0 {
			t.Errorf("stats %+v, want no dead letter while all of the name is down", got)
		}
		up.Store(true)
		w.await(time.Minute)
		r.stop()
		w.check()
	})
}

// TestAllRefused: while the destination rejects everything, with any name and error, nothing
// becomes a dead letter. Afterwards all messages arrive in order.
func TestAllRefused(t *testing.T) {
	for name, err := range map[string]error{
		"name": postrider.NameUnavailable(errOdd), "permanent": postrider.Permanent(errOdd), "unknown": errOdd, "unavailable": postrider.Unavailable(errOdd),
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 2)
				var up atomic.Bool
				s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(*postrider.Message) (error, bool) {
					if !up.Load() {
						return err, false
					}
					return nil, true
				}}}
				r := start(t, w.store, s, relay.Config{})
				for i := range 50 * 40 {
					w.commitTo("t"+strconv.Itoa(i%3), "k"+strconv.Itoa(i%600))
					time.Sleep(20 * time.Millisecond)
				}
				if got := r.Stats(); got.Dead != 0 || name != "permanent" && got.Deferred != 0 {
					t.Errorf("stats %+v, want nothing dead, and nothing written", got)
				}
				up.Store(true)
				w.await(time.Minute)
				r.stop()
				w.check()
				w.checkNothingRepeated()
			})
		})
	}
}

// TestOneOfMany: a message that fails without a class or as unavailable, while others succeed,
// delays no other, and ends as a dead letter or keeps waiting.
func TestOneOfMany(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		dead int64
	}{
		"unknown": {errOdd, 1}, "name": {postrider.NameUnavailable(errOdd), 1}, "permanent": {postrider.Permanent(errOdd), 1},
		"unavailable": {postrider.Unavailable(errOdd), 0},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 1)
				s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
					if m.Key == "bad" {
						return c.err, false
					}
					return nil, true
				}}
				w.commit("bad")
				w.commitMany(10_000, 1000)
				r := start(t, w.store, s, relay.Config{})
				time.Sleep(time.Second)
				if _, distinct, _ := w.counts(); distinct != 10_000 {
					t.Errorf("%d messages were received, want 10000", distinct)
				}
				time.Sleep(10 * time.Minute)
				if got := r.Stats(); got.Dead != c.dead || got.Buffered != 0 {
					t.Errorf("stats %+v, want %d dead", got, c.dead)
				}
				r.stop()
				w.checkNothingRepeated()
			})
		})
	}
}

// TestRestartsBehindFailure: ten clean restarts under load, with a message at the head of each
// shard that never succeeds.
func TestRestartsBehindFailure(t *testing.T) {
	for name, err := range map[string]error{
		"unknown": errOdd, "name": postrider.NameUnavailable(errOdd), "unavailable": postrider.Unavailable(errOdd),
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 4)
				s := &sink{w: w, keepsOrder: keepsOrder, delay: func() time.Duration { return 3 * time.Millisecond }, fail: func(m *postrider.Message) (error, bool) {
					if len(m.Key) == 2 { // k0 to k9, of all shards
						return err, false
					}
					return nil, true
				}}
				w.commitMany(10, 10)
				for range 10 {
					r := start(t, w.store, s, relay.Config{BatchSize: 7})
					for range 20 {
						w.commitMany(60, 60)
						time.Sleep(13 * time.Millisecond)
					}
					r.stop()
				}
				w.checkNothingRepeated()
			})
		})
	}
}

// TestPoisonedProbe: a held name recovers even if the message of a probe fails by itself.
func TestPoisonedProbe(t *testing.T) {
	for name, err := range map[string]error{"unknown": errOdd, "name": postrider.NameUnavailable(errOdd), "permanent": postrider.Permanent(errOdd)} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, keepsOrder bool) {
				w := newWorld(t, 1)
				var up atomic.Bool
				s := named{&sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
					if m.Topic == "full" && (!up.Load() || m.Key[0] == 'p') {
						return err, false
					}
					return nil, true
				}}}
				for i := range 30 {
					w.commitTo("full", "p"+strconv.Itoa(i))
				}
				for i := range 30 {
					w.commitTo("full", "f"+strconv.Itoa(i))
					w.commitTo("healthy", "h"+strconv.Itoa(i))
				}
				r := start(t, w.store, s, relay.Config{})
				time.Sleep(20 * time.Second)
				up.Store(true)
				time.Sleep(2 * time.Minute)
				if _, distinct, _ := w.counts(); distinct != 60 {
					t.Errorf("%d messages were received, want 60", distinct)
				}
				r.stop()
				w.checkNothingRepeated()
			})
		})
	}
}

// TestMemory: the bytes that a relay buffers are bounded, and a message larger than the bound is
// delivered.
func TestMemory(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const memory = 1 << 20
		w := newWorld(t, 4)
		for i := range 1000 {
			w.commitAs(func(m *postrider.Message) {
				m.Payload = append(m.Payload, bytes.Repeat([]byte(" "), 20<<10)...)
				if i%100 == 50 {
					m.Payload = append(m.Payload, bytes.Repeat([]byte(" "), 2*memory)...)
				}
			}, "k"+strconv.Itoa(i))
		}
		largest := 0
		var mu sync.Mutex
		var r *running
		s := publisher(func(_ context.Context, msgs []postrider.Message) []error {
			mu.Lock()
			defer mu.Unlock()
			for i := range msgs {
				m := msgs[i]
				m.Payload = bytes.TrimSpace(m.Payload)
				w.receive(&m, "")
				if len(msgs[i].Payload) > memory && len(msgs) > 1 {
					t.Errorf("a message larger than the bound goes with %d others", len(msgs)-1)
				}
			}
			largest = max(largest, r.Stats().Bytes)
			return nil
		})
		r = start(t, w.store, s, relay.Config{Memory: memory})
		w.await(time.Minute)
		r.stop()
		if largest > 4*(2*memory+100<<10) {
			t.Errorf("up to %d bytes were held, want %d at most", largest, memory)
		}
		w.checkNothingRepeated()
	})
}

// TestHalvedReads: a read that times out is repeated with half the size until it succeeds.
func TestHalvedReads(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var limits []int
		sent := 0
		s := &script{read: func(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
			limits = append(limits, want[0].Limit)
			if want[0].Limit > 500 {
				<-ctx.Done()
				return nil, fmt.Errorf("read: %w", ctx.Err())
			}
			if sent > 0 {
				return nil, nil
			}
			return []feeds.Batch{batch(0, 10)}, nil
		}}
		r := start(t, s, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			sent += len(msgs)
			return nil
		}), relay.Config{})
		time.Sleep(2 * time.Minute)
		r.stop()
		if sent != 10 {
			t.Errorf("%d messages were sent; the reads asked for %v", sent, limits[:min(len(limits), 10)])
		}
	})
}

// reporting is a store that records what is reported.
type reporting struct {
	feeds.Store
	all chan feeds.Problem
}

func (r reporting) Open(ctx context.Context, name string, m feeds.Member) (feeds.Feed, error) {
	feed, err := r.Store.Open(ctx, name, m)
	return reportingFeed{feed, r.all}, err
}

type reportingFeed struct {
	feeds.Feed
	all chan feeds.Problem
}

func (f reportingFeed) Report(_ context.Context, problems []feeds.Problem) error {
	for _, p := range problems {
		f.all <- p
	}
	return nil
}

// TestReport: the relay reports a problem of a name, or of the destination, within seconds, and so
// its end.
func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"name": {postrider.NameUnavailable(errOdd), "full"}, "destination": {postrider.Unavailable(errOdd), ""}, "unknown": {errOdd, ""},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			var up atomic.Bool
			s := named{&sink{w: w, fail: func(*postrider.Message) (error, bool) {
				if up.Load() {
					return nil, true
				}
				return c.err, false
			}}}
			w.commitTo("full", "k1", "k2")
			store := reporting{w.store, make(chan feeds.Problem, 1000)}
			r := start(t, store, s, relay.Config{})
			time.Sleep(5 * time.Second)
			select {
			case p := <-store.all:
				if p.Name != c.want || p.Failures == 0 || p.Cause != errOdd.Error() {
					t.Errorf("reported %+v, want %q", p, c.want)
				}
			default:
				t.Error("nothing was reported")
			}
			up.Store(true)
			time.Sleep(10 * time.Second)
			r.stop()
			last := make(map[string]feeds.Problem)
			for len(store.all) > 0 {
				p := <-store.all
				last[p.Name] = p
			}
			if p, ok := last[c.want]; !ok || p.Failures != 0 {
				t.Errorf("the last reports are %+v, want that it is over", last)
			}
		})
	}
}

// TestReportOverRestart: a relay ends a problem that an earlier one has reported.
func TestReportOverRestart(t *testing.T) {
	for name, err := range map[string]error{"name": postrider.NameUnavailable(errOdd), "destination": postrider.Unavailable(errOdd)} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			var up atomic.Bool
			s := named{&sink{w: w, fail: func(m *postrider.Message) (error, bool) {
				if up.Load() || m.Topic == "healthy" && postrider.ScopeOf(err) == postrider.ScopeName {
					return nil, true
				}
				return err, false
			}}}
			w.commitTo("full", "k1", "k2")
			w.commitTo("healthy", "k3")
			r := start(t, w.store, s, relay.Config{})
			time.Sleep(10 * time.Second)
			r.stop()
			open := func() (names []string) {
				problems, err := w.store.Problems(t.Context(), "default")
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range problems {
					if p.Over.IsZero() {
						names = append(names, p.Name)
					}
				}
				return names
			}
			if len(open()) != 1 {
				t.Fatalf("wrong with %q, want one", open())
			}
			up.Store(true)
			r = start(t, w.store, s, relay.Config{})
			time.Sleep(10 * time.Second)
			r.stop()
			w.check()
			if got := open(); len(got) > 0 {
				t.Errorf("wrong with %q, want nothing", got)
			}
		})
	}
}

// inspected is a sink that reports which names it lacks.
type inspected struct{ named }

func (inspected) Inspect(_ context.Context, names []string) (found broker.Inspection, err error) {
	for _, name := range names {
		found.Warnings = append(found.Warnings, broker.Warning{Danger: "there is no " + name, Remedy: "create " + name})
	}
	return found, nil
}

// TestInspection: a relay warns of names that it discovers when messages go to them, unless
// NoInspection is set.
func TestInspection(t *testing.T) {
	for quiet, want := range map[bool]int{false: 1, true: 0} {
		t.Run(strconv.FormatBool(quiet), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				var log bytes.Buffer
				r := start(t, w.store, inspected{named{&sink{w: w}}}, relay.Config{
					NoInspection: quiet, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				time.Sleep(time.Second)
				for range 10 {
					w.commitTo("tenant-7", "a", "b")
					time.Sleep(time.Second)
				}
				r.stop()
				if n := strings.Count(log.String(), `danger="there is no tenant-7" remedy="create tenant-7"`); n != want {
					t.Errorf("the log warns %d times, want %d:\n%s", n, want, &log)
				}
			})
		})
	}
}
