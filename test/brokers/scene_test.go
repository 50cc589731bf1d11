package brokers_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// scene is a fresh log whose messages go to one name of a broker.
type scene struct {
	t    *testing.T
	pool *pgxpool.Pool
	cfg  postgres.Config
	db   *postgres.DB
	name string
	keys int

	top       int          // numbers below it are assigned
	committed atomic.Int64 // number of messages
}

func newScene(t *testing.T, dsn, name string, keys int) *scene {
	t.Helper()
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{})
	db, err := postgres.Open(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{t: t, pool: pool, cfg: cfg, db: db, name: name, keys: keys}
}

// enqueue commits messages with consecutive numbers, in turn over the keys.
func (s *scene) enqueue(n int) {
	s.t.Helper()
	for end := s.top + n; s.top < end; {
		var msgs []postrider.Message
		for ; len(msgs) < 500 && s.top < end; s.top++ {
			m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: strconv.Itoa(s.top % s.keys)}, fmt.Appendf(nil, "%d", s.top))
			m.Topic = s.name
			msgs = append(msgs, m)
		}
		s.add(msgs...)
		s.committed.Add(int64(len(msgs)))
	}
}

// add commits messages that the outcome does not count.
func (s *scene) add(msgs ...postrider.Message) {
	s.t.Helper()
	ctx := s.t.Context()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.db.Outbox().Enqueue(ctx, tx, msgs...) })
	if err != nil {
		s.t.Fatal(err)
	}
}

// carry runs a relay until the returned function is called or the test ends.
func (s *scene) carry(pub postrider.Publisher) (*relay.Relay, func()) {
	s.t.Helper()
	r, err := relay.New(s.db.Feeds(), pub, relay.Config{Logger: logger(s.t)})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("relay: %v", err)
		}
	})
	s.t.Cleanup(stop)
	return r, stop
}

// outcome is what the consumer has received.
type outcome struct {
	received  int // including duplicates
	distinct  int
	disorder  int // first receipts of a key that came after a later one of it
	example   string
	malformed int
}

func (v outcome) String() string {
	return fmt.Sprintf("%d messages, %d received, %d repetitions, %d out of order", v.distinct, v.received, v.received-v.distinct, v.disorder)
}

// judge updates the outcome while messages arrive.
type judge struct {
	mu    sync.Mutex
	seen  map[int]bool
	last  map[string]int
	v     outcome
	done  chan struct{} // closed when the expected number of distinct messages has arrived
	wants int

	came    time.Time     // the last arrival
	longest time.Duration // between two arrivals
}

// count returns the number of distinct messages that have arrived.
func (j *judge) count() int { return j.outcome().distinct }

func (j *judge) outcome() outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.v
}

// silence returns the longest time without a message.
func (j *judge) silence() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.longest
}

func newJudge(wants int) *judge {
	return &judge{seen: make(map[int]bool), last: make(map[string]int), done: make(chan struct{}), wants: wants}
}

func (j *judge) receive(m postrider.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.v.received++; j.v.received > 1 {
		j.longest = max(j.longest, time.Since(j.came))
	}
	j.came = time.Now()
	n, err := strconv.Atoi(string(m.Payload))
	if err != nil {
		j.v.malformed++
		return
	}
	if j.seen[n] {
		return
	}
	j.seen[n] = true
	j.v.distinct++
	key := m.OrderKey()
	if before, ok := j.last[key]; ok && n < before {
		j.v.disorder++
		j.v.example = fmt.Sprintf("key %s: %d came after %d", key, n, before)
	} else {
		j.last[key] = n
	}
	if j.v.distinct == j.wants {
		close(j.done)
	}
}

// await waits until that many distinct messages have arrived.
func (j *judge) await(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); j.count() < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d messages arrived", j.count(), n)
		}
	}
}

// hear consumes until all committed messages have arrived, and returns the outcome.
func (s *scene) hear(c postrider.Consumer, within time.Duration) outcome {
	s.t.Helper()
	j := newJudge(int(s.committed.Load()))
	stop := s.listen(c, j)
	select {
	case <-j.done:
	case <-time.After(within):
	}
	stop()
	return j.outcome()
}

// expect fails unless everything has arrived, in order if ordered.
func (s *scene) expect(v outcome, ordered bool) {
	s.t.Helper()
	s.t.Log(v)
	if want := int(s.committed.Load()); v.distinct != want {
		s.t.Errorf("%d of %d messages are lost", want-v.distinct, want)
	}
	if v.malformed > 0 {
		s.t.Errorf("%d messages are malformed", v.malformed)
	}
	if ordered && v.disorder > 0 {
		s.t.Errorf("%d first receipts are out of order: %s", v.disorder, v.example)
	}
}

// delivered waits until the relay has published that many messages.
func (s *scene) delivered(r *relay.Relay, n int64, within time.Duration) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(within)
	for r.Stats().Published < n {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%d of %d messages were published within %v: %+v", r.Stats().Published, n, within, r.Stats())
		}
	}
}
