package relay_test

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
)

// TestOrder sends many small histories through a destination with random failures and compares the
// result with the model.
func TestOrder(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		bubble(t, strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t, 1+random.IntN(4))
			s := &sink{w: w, keepsOrder: seed%2 == 0, fail: moody(seed, 0.15*random.Float64())}
			if seed%3 > 0 {
				longest := int64(time.Millisecond) << random.IntN(6)
				step := 1 + random.Int64N(longest)
				var turn atomic.Int64
				s.delay = func() time.Duration { return time.Duration(turn.Add(step) % longest) }
			}
			batch := 1 + random.IntN(50)
			r := start(t, w.store, s, relay.Config{
				BatchSize: batch,
				ReadAhead: batch + random.IntN(200),
				Outage:    retry.Policy{Most: 500 * time.Millisecond},
				Retry:     retry.Policy{Most: time.Second, Attempts: 1000}, // failures are random, so none may end as a dead letter
			})
			keys := 1 + random.IntN(20)
			for range 100 {
				var tx []string
				for range 1 + random.IntN(10) {
					if k := random.IntN(keys + 1); k == keys {
						tx = append(tx, "")
					} else {
						tx = append(tx, "k"+strconv.Itoa(k))
					}
				}
				w.commit(tx...)
				time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
			}
			w.await(time.Hour)
			time.Sleep(time.Minute) // for messages that arrived without confirmation
			r.stop()
			w.check()
			if got := r.Stats(); got.Published != int64(w.total) || got.Buffered != 0 || got.Shards != 0 {
				t.Errorf("stats %+v after %d messages", got, w.total)
			}
		})
	}
}

// TestBrokerDown: after ten minutes of outage nothing is lost or repeated, and the log is short.
func TestBrokerDown(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 2)
		var up atomic.Bool
		s := &sink{w: w, keepsOrder: keepsOrder, fail: func(*postrider.Message) (error, bool) {
			if up.Load() {
				return nil, true
			}
			return postrider.Unavailable(errOdd), false
		}}
		log := newLogbook()
		r := start(t, w.store, s, relay.Config{Logger: slogOf(log)})
		w.commitMany(1000, 50)
		time.Sleep(10 * time.Minute)
		if calls := s.called(); calls > 2*600/2+20 {
			t.Errorf("%d calls in 10 minutes of outage", calls)
		}
		if n := log.count("WARN relay: publishing fails, trying again"); n < 30 || n > 2*21 {
			t.Errorf("%d lines about 10 minutes of outage", n)
		}
		up.Store(true)
		w.await(5 * time.Second)
		if n := log.count("INFO relay: publishing has recovered"); n != 2 {
			t.Errorf("%d lines about the recovery of 2 shards", n)
		}
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// TestRefused: the destination rejects one message. It is deferred together with the later ones of
// its key. After five attempts it is a dead letter, and its key waits until an operator acts.
// Nothing else waits, and nothing is dropped.
func TestRefused(t *testing.T) {
	bothModes(t, func(t *testing.T, keepsOrder bool) {
		w := newWorld(t, 1)
		var mended atomic.Bool
		l := newLedger()
		s := &sink{w: w, keepsOrder: keepsOrder, fail: func(m *postrider.Message) (error, bool) {
			if m.Key == "k1" && string(m.Payload) == "2" && !mended.Load() {
				l.note("refused")
				return postrider.Permanent(errOdd), false
			}
			return nil, true
		}}
		w.commitMany(1000, 4) // it is the tenth
		r := start(t, w.store, s, relay.Config{BatchSize: 40, ReadAhead: 200})
		time.Sleep(500 * time.Millisecond)
		if _, distinct, _ := w.counts(); distinct != 750+2 {
			t.Errorf("%d messages were received, want all but those of k1, and 2 of these", distinct)
		}
		time.Sleep(10 * time.Minute)
		if _, distinct, _ := w.counts(); distinct != 750+2 {
			t.Errorf("%d messages were received, want all but those of k1, and 2 of these", distinct)
		}
		at := l.times("refused")
		for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
			if gap := at[i+1] - at[i]; gap < pause || gap > pause*3/2+attendMax {
				t.Errorf("attempt %d came %v after the one before, want about %v", i+2, gap, pause)
			}
		}
		if got := r.Stats(); len(at) != 5 || got.Refused != 5 || got.Dead != 1 || got.Deferred != 248 || got.Blocked != 1 || got.Buffered != 0 {
			t.Errorf("%d attempts, stats %+v, want 5, one of them dead, and all others of the key deferred", len(at), got)
		}
		mended.Store(true)
		if n, err := w.store.Act(t.Context(), admin.By{}, admin.Retry, admin.Filter{Key: "k1", Head: true}, 0); n != 1 || err != nil {
			t.Errorf("retried %d, %v", n, err)
		}
		w.commitMany(400, 4)
		w.await(10 * time.Second)
		if got := r.Stats(); got.Blocked != 0 {
			t.Errorf("stats %+v, want no blocked key", got)
		}
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// attendMax is the maximum time between two requests for deferred messages.
const attendMax = 500 * time.Millisecond

// TestPlainErrorOfOneMessage: a handler that fails for one message without a class does not delay
// other keys. Because others succeed, the failure counts against the message, and it is deferred.
func TestPlainErrorOfOneMessage(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 1)
		var mended atomic.Bool
		handler := postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
			if m.Key == "k0" && !mended.Load() {
				return errOdd
			}
			w.receive(&m, "")
			return nil
		})
		w.commitMany(100, 10)
		r := start(t, w.store, handler, relay.Config{})
		time.Sleep(2 * time.Second)
		if _, distinct, _ := w.counts(); distinct != 90 {
			t.Errorf("%d messages were received, want all but those of k0", distinct)
		}
		for range 100 {
			w.commitMany(10, 10)
			time.Sleep(time.Second)
		}
		if _, distinct, _ := w.counts(); distinct != 90+900 {
			t.Errorf("%d messages were received, want all but those of k0", distinct)
		}
		if got := r.Stats(); got.Dead != 1 || got.Blocked != 1 {
			t.Errorf("stats %+v, want one dead letter", got)
		}
		mended.Store(true)
		if n, err := w.store.Act(t.Context(), admin.By{}, admin.Retry, admin.Filter{}, 0); n != 1 || err != nil {
			t.Errorf("retried %d, %v", n, err)
		}
		w.await(5 * time.Second)
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// TestBackPressure: a relay reads no more than ReadAhead messages for each worker, however slow the
// destination is, and avoids tiny pages.
func TestBackPressure(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const shards, ahead = 4, 200
		w := newWorld(t, shards)
		s := &sink{w: w, keepsOrder: true, delay: func() time.Duration { return 100 * time.Millisecond }}
		w.commitMany(20_000, 100)
		r := start(t, w.store, s, relay.Config{BatchSize: 20, ReadAhead: ahead})
		most, least := 0, shards*ahead
		for range 2000 {
			time.Sleep(5 * time.Millisecond)
			n := r.Stats().Buffered
			most, least = max(most, n), min(least, n)
		}
		if most > shards*ahead {
			t.Errorf("%d messages were buffered, more than %d", most, shards*ahead)
		}
		if least < shards*ahead/4 {
			t.Errorf("only %d messages were buffered: workers may run dry", least)
		}
		w.await(time.Hour)
		if reads := r.Stats().Reads; reads > 20_000/(ahead/2)+100 {
			t.Errorf("%d reads for 20000 messages: pages are tiny", reads)
		}
		r.stop()
		w.check()
		w.checkNothingRepeated()
	})
}

// TestShortAnswer: a publisher that returns too few errors does not make the relay lose messages.
func TestShortAnswer(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		w := newWorld(t, 1)
		w.commitMany(10, 10)
		r := start(t, w.store, shortAnswers{w}, relay.Config{})
		w.await(time.Minute)
		r.stop()
		if got := r.Stats(); got.Published != 10 {
			t.Errorf("%d published, want 10", got.Published)
		}
	})
}

// shortAnswers accepts the first message of a call and returns a list without the last one.
type shortAnswers struct{ w *world }

func (shortAnswers) Close() error { return nil }
func (s shortAnswers) Publish(_ context.Context, msgs []postrider.Message) []error {
	s.w.receive(&msgs[0], "")
	return make([]error, 1)
}

// TestConfig: New returns all errors at once, and a contradiction names both fields.
func TestConfig(t *testing.T) {
	if _, err := relay.New(newWorld(t, 1).store, &sink{}, relay.Config{}); err != nil {
		t.Errorf("the zero value does not work: %v", err)
	}
	_, err := relay.New(nil, nil, relay.Config{
		Lease:           -time.Second,
		BatchSize:       5000,
		PollMin:         time.Second,
		Outage:          retry.Policy{First: time.Minute, Most: time.Second},
		SettleInterval:  time.Hour,
		BalanceInterval: 2 * time.Hour,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range [][]string{
		{"store is nil"},
		{"publisher is nil"},
		{"Lease is negative"},
		{"BatchSize (5000)", "ReadAhead (4000)"},
		{"PollMin (1s)", "PollMax (250ms)"},
		{"Outage: First (1m0s)", "Most (1s)"},
		{"SettleInterval (1h0m0s)", "Lease (-1s)"},
		{"BalanceInterval (2h0m0s)", "Lease (-1s)"},
	} {
		found := false
		for line := range strings.Lines(err.Error()) {
			all := true
			for _, part := range want {
				all = all && strings.Contains(line, part)
			}
			found = found || all
		}
		if !found {
			t.Errorf("no line with %q in:\n%v", want, err)
		}
	}
}

// TestDebugLog: at level debug every attempt of a message is logged, without its content.
func TestDebugLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		failures := 0
		s := &sink{w: w, fail: func(m *postrider.Message) (error, bool) {
			if m.OrderKey() == "k1" && failures < 3 {
				failures++
				return errOdd, false
			}
			return nil, true
		}}
		var lines bytes.Buffer // a handler writes one line at a time
		r := start(t, w.store, s, relay.Config{Logger: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		w.commit("k1", "k2")
		w.await(time.Hour)
		r.stop()
		var attempts []string
		for line := range strings.Lines(lines.String()) {
			if strings.Contains(line, "level=DEBUG") && strings.Contains(line, "key=k1") {
				attempts = append(attempts, line)
			}
		}
		if len(attempts) != 4 {
			t.Fatal(attempts)
		}
		for i, want := range map[int][]string{
			0: {`msg="relay: not confirmed"`, "attempt=1", "err="}, 3: {`msg="relay: delivered"`, "attempt=4", "latency="},
		} {
			for _, text := range append(want, "feed=", "id=", "type=", "took=") {
				if !strings.Contains(attempts[i], text) {
					t.Errorf("line %d has no %s: %s", i, text, attempts[i])
				}
			}
		}
	})
}
