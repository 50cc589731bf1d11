package relay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// world is one store, one destination, and a record of everything committed and received: the
// simple model against which the relays are checked.
type world struct {
	t     *testing.T
	store *memory.DB

	mu        sync.Mutex
	committed map[string]int        // by key: number of messages, numbered from 0
	received  map[string][]delivery // by key
	seen      map[message]bool
	total     int // messages committed
	distinct  int // messages received at least once
	repeated  int // deliveries beyond the first
}

type message struct {
	key string
	seq int
}

type delivery struct {
	seq int
	by  string
	at  time.Time
}

func newWorld(t *testing.T, shards int) *world {
	return &world{
		t:         t,
		store:     memory.Open(memory.Config{Shards: shards}),
		committed: make(map[string]int),
		received:  make(map[string][]delivery),
		seen:      make(map[message]bool),
	}
}

// commit writes the next message of each key in one transaction. An empty key stands for a message
// without order.
func (w *world) commit(keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tx := w.store.Begin()
	for _, key := range keys {
		m := postrider.Event("happened", postrider.Aggregate{}, []byte(strconv.Itoa(w.committed[key])))
		m.Key = key
		if err := w.store.Enqueue(w.t.Context(), tx, m); err != nil {
			w.t.Error(err)
		}
		w.committed[key]++
		w.total++
	}
	if err := tx.Commit(); err != nil {
		w.t.Error(err)
	}
}

// commitMany writes n messages over the given number of keys, one transaction for each round over
// the keys.
func (w *world) commitMany(n, keys int) {
	names := make([]string, keys)
	for i := range names {
		names[i] = "k" + strconv.Itoa(i)
	}
	for ; n > 0; n -= keys {
		w.commit(names[:min(n, keys)]...)
	}
}

func (w *world) receive(m *postrider.Message, by string) {
	seq, err := strconv.Atoi(string(m.Payload))
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[message{m.Key, seq}] {
		w.repeated++
	} else {
		w.seen[message{m.Key, seq}] = true
		w.distinct++
	}
	w.received[m.Key] = append(w.received[m.Key], delivery{seq, by, time.Now()})
}

func (w *world) counts() (total, distinct, repeated int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total, w.distinct, w.repeated
}

// await waits until everything committed has been received.
func (w *world) await(limit time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		total, distinct, _ := w.counts()
		if distinct == total {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%d of %d messages were received within %v", distinct, total, limit)
		}
	}
}

// check compares what was received with what was committed: all of it, and first deliveries in
// order.
func (w *world) check() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, n := range w.committed {
		next, seen := 0, make(map[int]bool)
		for _, d := range w.received[key] {
			if seen[d.seq] {
				continue
			}
			seen[d.seq] = true
			if key != "" && d.seq != next {
				w.t.Errorf("key %s: %d was received before %d", key, d.seq, next)
				return
			}
			next++
		}
		if next != n {
			w.t.Errorf("key %s: %d of %d messages were received", key, next, n)
		}
	}
}

func (w *world) checkNothingRepeated() {
	w.t.Helper()
	if _, _, repeated := w.counts(); repeated > 0 {
		w.t.Errorf("%d messages were received twice", repeated)
	}
}

// sink is a destination with programmable failures. If its functions are nil, it accepts everything
// at once.
type sink struct {
	w          *world
	name       string
	keepsOrder bool
	delay      func() time.Duration
	fail       func(m *postrider.Message) (err error, arrived bool)

	mu       sync.Mutex
	inFlight map[string]bool
	calls    int
}

func (s *sink) KeepsOrder() bool { return s.keepsOrder }
func (s *sink) Close() error     { return nil }

func (s *sink) Publish(ctx context.Context, msgs []postrider.Message) []error {
	s.enter(msgs)
	defer s.leave(msgs)
	if s.delay != nil {
		select {
		case <-time.After(s.delay()):
		case <-ctx.Done():
			return repeat(ctx.Err(), len(msgs))
		}
	}
	errs := make([]error, len(msgs))
	failed := make(map[string]bool)
	for i := range msgs {
		m := &msgs[i]
		if s.keepsOrder && m.Key != "" && failed[m.Key] {
			errs[i] = postrider.Unavailable(errors.New("behind a failed message"))
			continue
		}
		arrived := true
		if s.fail != nil {
			errs[i], arrived = s.fail(m)
		}
		if errs[i] == nil || arrived {
			s.w.receive(m, s.name)
		}
		failed[m.Key] = failed[m.Key] || errs[i] != nil
	}
	return errs
}

// enter checks what a publisher that does not keep order may rely on.
func (s *sink) enter(msgs []postrider.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.inFlight == nil {
		s.inFlight = make(map[string]bool)
	}
	for i := range msgs {
		key := msgs[i].Key
		if s.inFlight[key] && !s.keepsOrder && key != "" {
			s.w.t.Errorf("two messages of key %s are in flight", key)
		}
		s.inFlight[key] = true
	}
}

func (s *sink) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *sink) leave(msgs []postrider.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range msgs {
		delete(s.inFlight, msgs[i].Key)
	}
}

func repeat(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

var errOdd = errors.New("something odd happened")

// moody fails at random, in every class. Of the messages with an unknown outcome, half have
// arrived.
func moody(seed uint64, share float64) func(*postrider.Message) (error, bool) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	return func(*postrider.Message) (error, bool) {
		mu.Lock()
		defer mu.Unlock()
		if random.Float64() > share {
			return nil, true
		}
		switch random.IntN(4) {
		case 0:
			return postrider.Unavailable(errOdd), false
		case 1:
			return postrider.Permanent(errOdd), false
		case 2:
			return errOdd, true
		default:
			return errOdd, false
		}
	}
}

// faults wraps the store of a relay. A hook is called with the name of the method before each call;
// an error that it returns replaces the call.
type faults struct {
	feeds.Store
	mu    sync.Mutex
	hook  func(op string) error
	calls map[string]int
	inner feeds.Feed
}

func (f *faults) set(hook func(op string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

func (f *faults) before(op string) error {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = make(map[string]int)
	}
	f.calls[op]++
	hook := f.hook
	f.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(op)
}

func (f *faults) count(ops ...string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, op := range ops {
		n += f.calls[op]
	}
	return n
}

func (f *faults) Open(ctx context.Context, feed string, m feeds.Member) (feeds.Feed, error) {
	if err := f.before("Open"); err != nil {
		return nil, err
	}
	inner, err := f.Store.Open(ctx, feed, m)
	f.mu.Lock()
	f.inner = inner
	f.mu.Unlock()
	return faultyFeed{f, inner}, err
}

// forget makes the memory store fall back to what was settled, like a database after a reset.
func (f *faults) forget(shards int) {
	marks := make([]feeds.Mark, shards)
	for i := range marks {
		marks[i].Shard = i
	}
	f.mu.Lock()
	inner := f.inner
	f.mu.Unlock()
	_ = inner.Release(context.Background(), marks)
}

type faultyFeed struct {
	f *faults
	feeds.Feed
}

func (f faultyFeed) Balance(ctx context.Context) (feeds.Share, error) {
	if err := f.f.before("Balance"); err != nil {
		return feeds.Share{}, err
	}
	return f.Feed.Balance(ctx)
}

func (f faultyFeed) Read(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
	if err := f.f.before("Read"); err != nil {
		return nil, err
	}
	return f.Feed.Read(ctx, want)
}

func (f faultyFeed) Settle(ctx context.Context, marks []feeds.Mark) ([]int, error) {
	if err := f.f.before("Settle"); err != nil {
		return nil, err
	}
	return f.Feed.Settle(ctx, marks)
}

func (f faultyFeed) Conclude(ctx context.Context, done []feeds.Conclusion) ([]string, error) {
	if err := f.f.before("Conclude"); err != nil {
		return nil, err
	}
	return f.Feed.Conclude(ctx, done)
}

func (f faultyFeed) Release(ctx context.Context, marks []feeds.Mark) error {
	if err := f.f.before("Release"); err != nil {
		return err
	}
	return f.Feed.Release(ctx, marks)
}

func (f faultyFeed) Close(ctx context.Context) error {
	if err := f.f.before("Close"); err != nil {
		return err
	}
	return f.Feed.Close(ctx)
}

// running is a running relay.
type running struct {
	*relay.Relay
	t      *testing.T
	cancel context.CancelFunc
	done   chan error
}

func start(t *testing.T, store feeds.Store, pub postrider.Publisher, cfg relay.Config) *running {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r, err := relay.New(store, pub, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{r, t, cancel, make(chan error, 1)}
	go func() { run.done <- r.Run(ctx) }()
	return run
}

// stop stops the relay and checks that the stop is clean.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Error(err)
	}
}

// logbook counts log lines by level and message.
type logbook struct {
	slog.Handler
	mu    *sync.Mutex
	lines map[string]int
}

func newLogbook() *logbook {
	return &logbook{slog.DiscardHandler, new(sync.Mutex), make(map[string]int)}
}

func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[fmt.Sprintf("%v %s", r.Level, r.Message)]++
	return nil
}

func (l *logbook) count(line string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[line]
}

func slogOf(h slog.Handler) *slog.Logger { return slog.New(h) }

// bubble runs a test in virtual time and fails it if goroutines are left.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func bothModes(t *testing.T, f func(t *testing.T, keepsOrder bool)) {
	t.Helper()
	bubble(t, "order kept", func(t *testing.T) { f(t, true) })
	bubble(t, "waves", func(t *testing.T) { f(t, false) })
}
