package postridertest

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	broker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/memory"
)

// Config configures a [World]. The zero value is valid.
type Config struct {
	// Store configures the store. Its number of shards defaults to 1, so that all messages are
	// delivered in the order of their commits. Its InboxWindow defaults to 292 years, because the
	// time of a bubble begins in the year 2000, and the IDs of messages may contain the real time.
	Store memory.Config
	// Relay configures the relay. Its intervals default to shorter ones than those of
	// [relay.Config], except those of retries.
	Relay relay.Config
	// Route inserts the application's own routes between the relay and the broker. Defaults to
	// none.
	Route func(broker postrider.Publisher) postrider.Publisher
	// Faults configures faults between store, broker and consumers. Defaults to none.
	Faults Faults
	// Parallel lets handlers run concurrently, as in production. Defaults to false: handlers run
	// one at a time, so that those of a test need no locks and run in the same order each time.
	Parallel bool
	// Patience limits how long Deliver continues while messages keep coming and, outside of a
	// bubble, how long Settle and Advance wait. Defaults to 1 minute.
	Patience time.Duration
}

// World is everything between a producer and its consumers, in memory: a store, a broker, a relay,
// and consumers. They only work during [World.Deliver], [World.Settle] and [World.Advance], which
// return when everything is quiet. Use a World only in the goroutine of its test.
//
// It works inside and outside of a bubble of testing/synctest. In a bubble time is virtual, and
// waiting takes no time. No goroutine is left when a method returns, so there is nothing to close.
type World struct {
	// Store provides transactions, by Do or Begin, and the admin port.
	Store *memory.DB
	// Outbox is the outbox of the store. It records what is enqueued.
	Outbox *Recorder[*memory.Tx]
	// Broker has the messages that were sent. Its Fail makes it refuse messages. Messages published
	// to it directly do not reach consumers: see [World.Publish].
	Broker *broker.Broker
	// Faults injects the configured faults.
	Faults *Injector

	t        testing.TB
	cfg      Config
	bubble   bool
	log      *slog.Logger
	journal  *journal
	arrivals *arrivals
	door     postrider.Publisher               // publishes to the broker without faults
	pub      postrider.Publisher               // publisher of the relay
	carriers []func(ctx context.Context) error // run the consumers
	subs     []*subscription
	unquiet  string // why the last Deliver gave up; empty if it did not
}

// New returns a world for a test. Its parts log errors to the output of the test.
func New(t testing.TB, cfg Config) *World {
	t.Helper()
	if cfg.Store.Shards == 0 {
		cfg.Store.Shards = 1
	}
	if cfg.Store.InboxWindow == 0 {
		cfg.Store.InboxWindow = math.MaxInt64
	}
	cfg.Patience = cmp.Or(cfg.Patience, time.Minute)
	cfg.Relay.Feed = cmp.Or(cfg.Relay.Feed, "default")
	cfg.Relay.Lease = cmp.Or(cfg.Relay.Lease, max(2*time.Second, 4*cfg.Faults.Delay))
	cfg.Relay.BalanceInterval = cmp.Or(cfg.Relay.BalanceInterval, cfg.Relay.Lease/20)
	cfg.Relay.SettleInterval = cmp.Or(cfg.Relay.SettleInterval, time.Millisecond)
	cfg.Relay.PollMin = cmp.Or(cfg.Relay.PollMin, time.Millisecond)
	cfg.Relay.PollMax = cmp.Or(cfg.Relay.PollMax, 5*time.Millisecond)
	cfg.Relay.Outage = cfg.Relay.Outage.Or(retry.Policy{First: 20 * time.Millisecond, Most: 200 * time.Millisecond})
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	if cfg.Relay.Logger == nil {
		cfg.Relay.Logger = log
	}

	w := &World{t: t, cfg: cfg, bubble: inBubble(), log: log, journal: newJournal(cfg.Parallel)}
	w.Store = memory.Open(cfg.Store)
	w.Outbox = Record(postrider.Outbox[*memory.Tx](w.Store))
	w.Outbox.log.counted = func(m postrider.Message) { w.journal.add(Step{What: Enqueued, Message: m}) }
	w.Broker = broker.New()
	w.Faults = Inject(t, cfg.Faults)
	w.arrivals = &arrivals{more: make(chan struct{})}
	w.door = accepting{w.Broker, w.arrivals, w.journal}
	w.pub = asking{w.Faults.Publisher(w.door), w.journal}
	if cfg.Route != nil {
		w.pub = cfg.Route(w.pub)
	}
	if _, err := relay.New(w.Store, w.pub, cfg.Relay); err != nil {
		t.Fatalf("postridertest: %v", err)
	}
	return w
}

// Inbox returns a new inbox that receives from the broker what is sent to the topics, or everything
// without topics. Register its handlers before the next Deliver.
func (w *World) Inbox(name string, cfg inbox.Config, topics ...string) *inbox.Inbox[*memory.Tx] {
	w.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = w.log
	}
	store := watched[*memory.Tx]{InboxStore(w.Faults, inbox.Store[*memory.Tx](w.Store.Inbox())), w.journal}
	in, err := inbox.New(inbox.Store[*memory.Tx](store), name, cfg)
	if err != nil {
		w.t.Fatalf("postridertest: %v", err)
	}
	consumer := w.Faults.Consumer(w.subscribe(name, topics))
	w.carriers = append(w.carriers, func(ctx context.Context) error { return in.Run(ctx, consumer) })
	return in
}

// Subscribe registers a handler that receives from the broker what is sent to the topics, or
// everything without topics. It is for consumers without an inbox.
func (w *World) Subscribe(name string, handle postrider.Handler, topics ...string) {
	consumer := w.Faults.Consumer(w.subscribe(name, topics))
	w.carriers = append(w.carriers, func(ctx context.Context) error {
		return consumer.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
			err := handle(ctx, m)
			if err != nil {
				w.journal.add(Step{What: Failed, By: name, Message: m, Err: err.Error()})
			} else {
				w.journal.add(Step{What: Handled, By: name, Message: m})
			}
			return err
		})
	})
}

// Publish sends messages to the broker directly, without the store, the relay and the faults, like
// another producer or an operator who sends something again. The next Deliver delivers them.
func (w *World) Publish(msgs ...postrider.Message) {
	w.t.Helper()
	for _, err := range w.door.Publish(context.Background(), msgs) {
		if err != nil {
			w.t.Fatalf("postridertest: %v", err)
		}
	}
}

func (w *World) subscribe(name string, topics []string) *subscription {
	s := &subscription{name: name, topics: topics, arrivals: w.arrivals, journal: w.journal, log: w.log, acked: make(map[int]bool)}
	w.subs = append(w.subs, s)
	return s
}

// inBubble reports whether the goroutine is in a bubble of testing/synctest.
func inBubble() (yes bool) {
	defer func() { yes = recover() == nil }()
	synctest.Wait()
	return true
}
