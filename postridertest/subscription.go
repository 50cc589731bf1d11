package postridertest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/retry"
)

// arrivals is the list of messages that the broker of a world has accepted, for its consumers.
type arrivals struct {
	mu   sync.Mutex
	msgs []postrider.Message // append-only
	more chan struct{}       // closed and replaced when messages arrive
}

func (a *arrivals) add(m postrider.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.msgs = append(a.msgs, copyMessage(m))
	close(a.more)
	a.more = make(chan struct{})
}

func (a *arrivals) all() ([]postrider.Message, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.msgs, a.more
}

// subscription is a consumer of a world, with its acknowledgements.
type subscription struct {
	name     string
	topics   []string
	arrivals *arrivals
	journal  *journal
	log      *slog.Logger

	mu    sync.Mutex
	acked map[int]bool // by index in arrivals
	done  int          // all messages before this index are acknowledged or for other consumers
}

// Consume implements [postrider.Consumer].
func (s *subscription) Consume(ctx context.Context, handle postrider.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	in := intake.Open(ctx, func(ctx context.Context, m postrider.Message) error {
		defer s.journal.handle()()
		s.journal.add(Step{What: Received, By: s.name, Message: m})
		return handle(ctx, m)
	}, intake.Config{Retry: retry.Policy{First: 10 * time.Millisecond, Most: 200 * time.Millisecond}, Logger: s.log})
	defer in.Wait()
	defer cancel()
	for next := 0; ; {
		msgs, more := s.arrivals.all()
		for ; next < len(msgs); next++ {
			at := next
			if s.open(&msgs[at], at) && !in.Accept(intake.Delivery{Message: copyMessage(msgs[at]), Done: func() { s.ack(at) }}) {
				return nil
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

// Close implements [postrider.Consumer].
func (s *subscription) Close() error { return nil }

// open reports whether a message is for this consumer and not acknowledged.
func (s *subscription) open(m *postrider.Message, at int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.acked[at] && (len(s.topics) == 0 || slices.Contains(s.topics, m.Topic))
}

func (s *subscription) ack(at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked[at] = true
}

// left returns the number of messages that are not acknowledged. It must not be called
// concurrently.
func (s *subscription) left() (n int) {
	msgs, _ := s.arrivals.all()
	for at := s.done; at < len(msgs); at++ {
		if s.open(&msgs[at], at) {
			n++
		} else if n == 0 {
			s.done = at + 1
		}
	}
	return n
}
