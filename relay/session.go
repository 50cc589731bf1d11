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

// callTimeout bounds every call of the store for which nothing else sets a bound: a connection that has silently died must not
// stop the relay for good.
const callTimeout = 15 * time.Second

// shared is what all parts of a relay share.
type shared struct {
	cfg      Config
	pub      postrider.Publisher
	log      *slog.Logger
	wake     chan struct{} // holds one token: somebody wants the store to be read now
	probing  chan struct{} // holds one token: a message is being sent of which a crash is suspected, and it alone
	deaths   seldom        // lines about dead letters,
	refusals seldom        // and about messages that were deferred
	problems problems      // to be reported
	count    counters
	watch    *inspection.Watch // nil if nobody asks what confirmed means
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

// sent takes note of where a call has gone to. One message of a call is enough: the others begin calls of their own sooner or later.
func (s *shared) sent(msgs []postrider.Message, errs []error) {
	if s.watch != nil && s.nameOf != nil {
		s.watch.Called(s.nameOf(&msgs[0]), errs)
	}
}

// trace logs what has become of each message of a call, for those who look for a single one: at level debug, and free otherwise.
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

// machine is how the state machine of a shard is set up.
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
	c.NameOf = s.nameOf
	return c
}

// setPaused keeps the text of an error that only an operator can do something about.
func (s *shared) setPaused(err error) {
	if errors.Is(err, feeds.ErrForeign) || errors.Is(err, feeds.ErrSchema) {
		text := err.Error()
		s.count.paused.Store(&text)
	} else if err == nil {
		s.count.paused.Store(nil)
	}
}

const pausedFeed = "the feed is paused; to go on: postrider feeds resume"

// setPausedFeed notes whether an operator has paused the feed.
func (s *shared) setPausedFeed(paused bool) {
	if !paused {
		return // setPaused has noted that nothing is in the way
	}
	text := pausedFeed
	s.count.paused.Store(&text)
}

// session is what lanes, and those who work for all of them, share for as long as the store vouches for what it hands out.
type session struct {
	*shared
	feed     feeds.Feed
	splitter feeds.Splitter  // the same, if it can split shards; otherwise nil
	hard     context.Context // for Publish: survives a reset, so that nothing is torn out of the publisher's hands
	ctx      context.Context // for calls of the feed: hard, cut by a reset

	more    chan struct{} // to the reader: a lane has room again, or is new
	settled chan struct{} // to the settler: a lane has progressed, or is new
	drained chan struct{} // to the keeper: a lane has ended
	ledger  chan struct{} // held during Settle and Release, lest one contradicts the other
	dueWake chan struct{} // to whoever asks for deferred messages: there may be some, or a lane can take some
	dueSome atomic.Bool   // there may be some
	tight   atomic.Bool   // the budget in bytes is used up
}

// newSession returns a session, and how to cut it.
func newSession(hard context.Context, s *shared, feed feeds.Feed) (*session, context.CancelFunc) {
	ctx, cancel := context.WithCancel(hard)
	splitter, _ := feed.(feeds.Splitter)
	return &session{
		shared: s, feed: feed, splitter: splitter, hard: hard, ctx: ctx,
		more: make(chan struct{}, 1), settled: make(chan struct{}, 1), drained: make(chan struct{}, 1),
		ledger: make(chan struct{}, 1), dueWake: make(chan struct{}, 1),
	}, cancel
}

// lookForDue has deferred messages asked for.
func (s *session) lookForDue() {
	s.dueSome.Store(true)
	signal(s.dueWake)
}

// signal leaves a token in a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
