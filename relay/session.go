package relay

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay/internal/shard"
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
	careful  chan struct{} // holds one token: a message is being sent of which a crash is suspected, and it alone
	deaths   seldom        // lines about dead letters,
	refusals seldom        // and about messages that were deferred
	problems problems      // to be reported
	count    counters
}

func newShared(cfg Config, pub postrider.Publisher) *shared {
	return &shared{
		cfg: cfg, pub: pub, log: cfg.Logger.With("feed", cfg.Feed), wake: make(chan struct{}, 1), careful: make(chan struct{}, 1),
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
	if keeper, ok := s.pub.(postrider.OrderKeeper); ok {
		c.KeepsOrder = keeper.KeepsOrder()
	}
	if namer, ok := s.pub.(postrider.Namer); ok {
		c.NameOf = namer.NameOf
	}
	return c
}

// setPaused keeps the text of an error that only an operator can do something about.
func (s *shared) setPaused(err error) {
	if errors.Is(err, postrider.ErrForeign) || errors.Is(err, postrider.ErrSchema) {
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
	feed     postrider.Feed
	splitter postrider.Splitter // the same, if it can split shards; otherwise nil
	hard     context.Context    // for Publish: survives a reset, so that nothing is torn out of the publisher's hands
	ctx      context.Context    // for calls of the feed: hard, cut by a reset

	more    chan struct{} // to the reader: a lane has room again, or is new
	settled chan struct{} // to the settler: a lane has progressed, or is new
	drained chan struct{} // to the keeper: a lane has ended
	ledger  chan struct{} // held during Settle and Release, lest one contradicts the other
	dueWake chan struct{} // to whoever asks for deferred messages: there may be some, or a lane can take some
	dueSome atomic.Bool   // there may be some
	tight   atomic.Bool   // the budget in bytes is used up
}

// newSession returns a session, and how to cut it.
func newSession(hard context.Context, s *shared, feed postrider.Feed) (*session, context.CancelFunc) {
	ctx, cancel := context.WithCancel(hard)
	splitter, _ := feed.(postrider.Splitter)
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
