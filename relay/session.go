package relay

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/inspection"
	"github.com/postrider/postrider/relay/internal/shard"
	"github.com/postrider/postrider/store/feeds"
)

// callTimeout limits every call of the store that has no other limit: a silently dead connection
// must not stop the relay forever.
const callTimeout = 15 * time.Second

// shared holds the state that all parts of a relay share.
type shared struct {
	cfg  Config
	pub  postrider.Publisher
	log  *slog.Logger
	wake chan struct{} // holds one token: read the store now
	// probing holds one token while a suspect message is being sent: only one per process, so that
	// a crash shows which message caused it.
	probing  chan struct{}
	deaths   logLimit // limits log lines about dead letters,
	refusals logLimit // and about messages that failed and were deferred
	problems problems // to be reported
	count    counters
	watch    *inspection.Watch // nil if confirmations are not inspected
	nameOf   func(*postrider.Message) string
}

func newShared(cfg Config, pub postrider.Publisher) *shared {
	s := &shared{
		cfg: cfg, pub: pub, log: cfg.Logger.With("feed", cfg.Feed), wake: make(chan struct{}, 1), probing: make(chan struct{}, 1),
	}
	if namer, ok := pub.(broker.Namer); ok {
		s.nameOf = namer.NameOf
	}
	if !cfg.NoInspection {
		s.watch = inspection.New(pub, s.log, nil)
	}
	return s
}

// sent reports the outcome of a call to the inspection watch. The name of the first message is
// enough: over time, each name comes first in some call.
func (s *shared) sent(msgs []postrider.Message, errs []error) {
	if s.watch != nil && s.nameOf != nil {
		s.watch.Called(s.nameOf(&msgs[0]), errs)
	}
}

// trace logs the outcome of each message of a call at level debug.
func (s *shared) trace(ctx context.Context, c *shard.Call, errs []error, took time.Duration) {
	if !s.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		attempt := 1
		if c.Attempts != nil {
			attempt += c.Attempts[i]
		}
		attrs := []any{"", *m, "attempt", attempt, "took", took, "latency", time.Since(m.OccurredAt).Round(time.Millisecond)}
		if errs != nil && errs[i] != nil {
			s.log.DebugContext(ctx, "relay: not confirmed", append(attrs, "err", errs[i])...)
		} else {
			s.log.DebugContext(ctx, "relay: delivered", attrs...)
		}
	}
}

// machine returns the configuration of a shard's state machine.
func (s *shared) machine(number int, slice, splits bool) shard.Config {
	cfg := &s.cfg
	c := shard.Config{
		Shard: number, Strict: cfg.Order == Strict, Slice: slice, Splits: splits,
		BatchSize: cfg.BatchSize, CallBytes: cfg.Memory / 8, ReadAhead: cfg.ReadAhead, Lease: cfg.Lease, Timeout: cfg.PublishTimeout,
		Retry: shard.Retry{Outage: cfg.Outage, Message: cfg.Retry, Random: rand.Float64},
	}
	if keeper, ok := s.pub.(broker.OrderKeeper); ok {
		c.KeepsOrder = keeper.KeepsOrder()
	}
	if filter, ok := s.pub.(broker.Filter); ok {
		c.Sends = filter.Sends
	}
	c.NameOf = s.nameOf
	return c
}

// setPaused stores the text of an error that needs an operator, and clears it if err is nil.
func (s *shared) setPaused(err error) {
	if errors.Is(err, feeds.ErrForeign) || errors.Is(err, feeds.ErrSchema) {
		text := err.Error()
		s.count.paused.Store(&text)
	} else if err == nil {
		s.count.paused.Store(nil)
	}
}

const pausedFeed = "the feed is paused; to go on: postrider feeds resume"

// setPausedFeed records that an operator has paused the feed.
func (s *shared) setPausedFeed(paused bool) {
	if !paused {
		return // setPaused(nil) has cleared it
	}
	text := pausedFeed
	s.count.paused.Store(&text)
}

// session holds what the workers and the goroutines of an epoch share.
type session struct {
	*shared
	feed     feeds.Feed
	splitter feeds.Splitter  // feed, if it can split shards; otherwise nil
	hard     context.Context // for Publish: survives a reset, so that no running call is cancelled
	ctx      context.Context // for calls of the feed: child of hard, cancelled by a reset

	more    chan struct{} // to the reader: a worker is new or has room again
	settled chan struct{} // to the settler: a worker is new or has progressed
	drained chan struct{} // to the keeper: a worker has ended
	ledger  chan struct{} // held during Settle and Release, which must not overlap
	dueWake chan struct{} // to fetchDue: there may be deferred messages, or a worker can take some
	dueSome atomic.Bool   // there may be deferred messages
	tight   atomic.Bool   // the byte budget is used up
}

// newSession returns a session and the function that cancels its calls of the feed.
func newSession(hard context.Context, s *shared, feed feeds.Feed) (*session, context.CancelFunc) {
	ctx, cancel := context.WithCancel(hard)
	splitter, _ := feed.(feeds.Splitter)
	return &session{
		shared: s, feed: feed, splitter: splitter, hard: hard, ctx: ctx,
		more: make(chan struct{}, 1), settled: make(chan struct{}, 1), drained: make(chan struct{}, 1),
		ledger: make(chan struct{}, 1), dueWake: make(chan struct{}, 1),
	}, cancel
}

// lookForDue triggers a request for deferred messages.
func (s *session) lookForDue() {
	s.dueSome.Store(true)
	signal(s.dueWake)
}

// signal puts a token into a channel with a capacity of one, unless it has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
