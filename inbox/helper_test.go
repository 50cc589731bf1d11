package inbox_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

type tx = *memory.Tx

var errHandler = errors.New("no such customer")

// fixture is an inbox on a store in memory, with the committed effects of its handlers.
type fixture struct {
	*inbox.Inbox[tx]
	t       *testing.T
	store   *memory.DB
	flaky   *flaky
	effects effects
}

func newFixture(t *testing.T, cfg inbox.Config) *fixture {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	store := memory.Open(memory.Config{})
	h := &fixture{t: t, store: store, flaky: &flaky{Store: store.Inbox()}}
	var err error
	if h.Inbox, err = inbox.New(h.flaky, "billing", cfg); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs the inbox until the function that it returns is called.
func (h *fixture) run(consumers ...postrider.Consumer) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx, consumers...) }()
	return func() {
		h.t.Helper()
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	}
}

func (h *fixture) receive(m postrider.Message) {
	h.t.Helper()
	if err := h.Receive(h.t.Context(), m); err != nil {
		h.t.Fatal(err)
	}
}

// deadLetters returns the deferred messages.
func (h *fixture) deadLetters() []feeds.Deferred {
	h.t.Helper()
	all, err := h.store.List(h.t.Context(), admin.Filter{Feed: inbox.Feed("billing")}, nil, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func (h *fixture) wantDeadLetters(want ...string) {
	h.t.Helper()
	var got []string
	for _, d := range h.deadLetters() {
		got = append(got, string(d.Payload)+" "+string(d.Status))
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("deferred: %q, want %q", got, want)
	}
}

func (h *fixture) wantStats(want inbox.Stats) {
	h.t.Helper()
	if got := h.Stats(); got != want {
		h.t.Errorf("got %+v, want %+v", got, want)
	}
}

// effects are the committed effects of handlers.
type effects struct {
	mu   sync.Mutex
	list []string
}

// add records an effect when the transaction commits.
func (e *effects) add(ctx context.Context, text string) error {
	ok := postrider.AfterCommit(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.list = append(e.list, text)
	})
	if !ok {
		return errors.New("not in a transaction")
	}
	return nil
}

func (e *effects) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

func (h *fixture) wantEffects(want ...string) {
	h.t.Helper()
	if got := h.effects.all(); !slices.Equal(got, want) {
		h.t.Errorf("effects %q, want %q", got, want)
	}
}

// record is a handler that records the payload as its effect.
func (h *fixture) record(ctx context.Context, _ tx, m postrider.Message) error {
	return h.effects.add(ctx, string(m.Payload))
}

// flaky is a store that can be made unreachable.
type flaky struct {
	inbox.Store[tx]
	down  atomic.Bool
	calls atomic.Int64
}

var errDown = postrider.Unavailable(errors.New("connection refused"))

func (f *flaky) ask() error {
	f.calls.Add(1)
	if f.down.Load() {
		return errDown
	}
	return nil
}

func (f *flaky) Open(ctx context.Context, consumer string) (time.Duration, error) {
	if err := f.ask(); err != nil {
		return 0, err
	}
	return f.Store.Open(ctx, consumer)
}

func (f *flaky) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[tx]) ([]inbox.Verdict, error) {
	if err := f.ask(); err != nil {
		return nil, err
	}
	return f.Store.Handle(ctx, consumer, msgs, late, work)
}

func (f *flaky) Defer(ctx context.Context, consumer string, m postrider.Message, s inbox.Deferral) error {
	if err := f.ask(); err != nil {
		return err
	}
	return f.Store.Defer(ctx, consumer, m, s)
}

func (f *flaky) Retry(ctx context.Context, consumer string, work func(context.Context, tx, feeds.Deferred) error, decide func(feeds.Deferred, error) inbox.Deferral) (inbox.Attempt, error) {
	if err := f.ask(); err != nil {
		return inbox.Attempt{Next: -1}, err
	}
	return f.Store.Retry(ctx, consumer, work, decide)
}

func (f *flaky) Maintain(ctx context.Context) error {
	if err := f.ask(); err != nil {
		return err
	}
	return f.Store.Maintain(ctx)
}

// message returns a message whose ID contains the current time, also under a fake clock.
func message(key, text string) postrider.Message {
	return postrider.Message{ID: madeAt(time.Now()), Type: "t", Key: key, Payload: []byte(text), Topic: "orders"}
}

func madeAt(at time.Time) (id postrider.ID) {
	_, _ = rand.Read(id[:]) // never fails
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|0x7000|uint64(id[7])<<4)
	id[8] = id[8]&0x3f | 0x80
	return id
}
