package memory_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	broker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/memory"
)

// office is a complete outbox in one process: store, dispatcher and destination.
type office struct {
	t      *testing.T
	store  *memory.DB
	outbox postrider.Outbox[*sql.Tx]
	broker *broker.Broker

	mu    sync.Mutex
	noted []call // calls of Publish
}

type call struct {
	at    time.Time
	types []string
}

func newOffice(t *testing.T) *office {
	s := memory.Open(memory.Config{Shards: 1})
	return &office{t: t, store: s, outbox: memory.Outbox[*sql.Tx](s), broker: broker.New()}
}

// Publish records each call before it forwards it.
func (o *office) Publish(ctx context.Context, msgs []postrider.Message) []error {
	c := call{at: time.Now()}
	for _, m := range msgs {
		c.types = append(c.types, m.Type)
	}
	o.mu.Lock()
	o.noted = append(o.noted, c)
	o.mu.Unlock()
	return o.broker.Publish(ctx, msgs)
}

func (o *office) calls() []call {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.noted)
}

func (o *office) KeepsOrder() bool { return true }

func (o *office) Close() error { return nil }

// start starts the dispatcher and returns a function that stops it.
func (o *office) start(cfg relay.Config) (stop func()) {
	o.t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	dispatcher, err := relay.New(o.store, o, cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan error)
	go func() { done <- dispatcher.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			o.t.Error(err)
		}
	}
}

func (o *office) enqueue(what string, opts ...postrider.Option) {
	o.t.Helper()
	if err := o.outbox.Enqueue(o.t.Context(), nil, postrider.Event(what, postrider.Aggregate{Type: "thing", ID: what}, nil, opts...)); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) arrived() (types []string) {
	for _, m := range o.broker.Messages() {
		types = append(types, m.Type)
	}
	return types
}

func (o *office) want(types ...string) {
	o.t.Helper()
	if got := o.arrived(); !slices.Equal(got, types) {
		o.t.Errorf("%q have arrived, want %q", got, types)
	}
}

// A dispatcher delivers between its start and its stop, and another start continues where it
// stopped.
func TestDispatcherStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.enqueue("before")
		stop := o.start(relay.Config{})
		time.Sleep(time.Second)
		o.want("before")
		stop()
		o.enqueue("between")
		time.Sleep(time.Minute)
		o.want("before")
		stop = o.start(relay.Config{})
		time.Sleep(time.Second)
		stop()
		o.want("before", "between")
	})
}

// It polls at the given interval, and publishes in batches of the given size.
func TestDispatcherIntervalAndBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		o := newOffice(t)
		stop := o.start(relay.Config{PollMin: interval, PollMax: interval, BatchSize: 50, ReadAhead: 200})
		time.Sleep(time.Second)
		for range 20 {
			begin, before := time.Now(), len(o.calls())
			for i := range 120 {
				o.enqueue(fmt.Sprint("m", i))
			}
			time.Sleep(3*interval + 33*time.Millisecond)
			if calls := o.calls(); len(calls) == before || calls[before].at.Sub(begin) > interval+time.Millisecond {
				t.Fatalf("nothing was published within %v", interval)
			}
		}
		stop()
		for _, c := range o.calls() {
			if len(c.types) > 50 {
				t.Errorf("a batch of %d, want at most 50", len(c.types))
			}
		}
		if n := len(o.arrived()); n != 2400 {
			t.Errorf("%d messages have arrived, want 2400", n)
		}
	})
}

// A message that fails is retried after the pauses of the series, and becomes a dead letter after
// the last attempt.
func TestDispatcherBackoffSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.broker.Fail(func(postrider.Message) error { return postrider.Permanent(sql.ErrNoRows) })
		o.enqueue("refused")
		series := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
		stop := o.start(relay.Config{Retry: retry.Policy{Pauses: series, Attempts: 4}})
		time.Sleep(10 * time.Minute)
		stop()
		calls := o.calls()
		if len(calls) != 4 {
			t.Fatalf("%d attempts, want 4", len(calls))
		}
		for i, pause := range series {
			if got := calls[i+1].at.Sub(calls[i].at); got < pause || got > pause*3/2+10*time.Millisecond {
				t.Errorf("pause %d is %v, want %v, and up to half of it at random", i, got, pause)
			}
		}
		o.want()
	})
}

// The highest priority goes first, and nothing goes before its time.
func TestDispatcherPriorityAndDeliverAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		at := func(d time.Duration) postrider.Option {
			due := time.Now().Add(d)
			return func(m *postrider.Message) { m.DeliverAfter = due }
		}
		priority := func(n int) postrider.Option { return func(m *postrider.Message) { m.Priority = n } }
		o.enqueue("in two hours", at(2*time.Hour), priority(9))
		o.enqueue("in an hour", at(time.Hour))
		o.enqueue("plain")
		o.enqueue("urgent", priority(5))
		o.enqueue("most urgent", priority(9))
		stop := o.start(relay.Config{})
		time.Sleep(time.Hour - time.Second)
		o.want("most urgent", "urgent", "plain")
		time.Sleep(3 * time.Second)
		o.want("most urgent", "urgent", "plain", "in an hour")
		time.Sleep(time.Hour)
		o.want("most urgent", "urgent", "plain", "in an hour", "in two hours")
		stop()
	})
}
