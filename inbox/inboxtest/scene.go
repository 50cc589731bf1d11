package inboxtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// consumer is the name that most cases use.
const consumer = "billing"

// timeout is the time limit for anything that a test waits for.
const timeout = 20 * time.Second

var (
	errWork  = errors.New("the work has failed")
	operator = admin.By{Who: "ann", Why: "a test"}
)

type scene[Tx any] struct {
	Subject[Tx]
	t   testing.TB
	ctx context.Context
}

func newScene[Tx any](t testing.TB, s Subject[Tx]) *scene[Tx] {
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	t.Cleanup(cancel)
	if _, err := s.Store.Open(ctx, consumer); err != nil {
		t.Fatal(err)
	}
	return &scene[Tx]{s, t, ctx}
}

func message(key, text string) postrider.Message {
	return postrider.Message{ID: postrider.NewID(), Type: "t", Key: key, Payload: []byte(text)}
}

// handle passes messages to the store; each fresh one writes its payload as a mark.
func (s *scene[Tx]) handle(msgs ...postrider.Message) ([]inbox.Verdict, error) {
	return s.Store.Handle(s.ctx, consumer, msgs, false, s.marking(msgs))
}

func (s *scene[Tx]) marking(msgs []postrider.Message) inbox.Work[Tx] {
	return func(ctx context.Context, tx Tx, fresh []int) error {
		for _, i := range fresh {
			if err := s.Mark(ctx, tx, string(msgs[i].Payload)); err != nil {
				return err
			}
		}
		return nil
	}
}

// mustHandle handles a message and checks the verdict.
func (s *scene[Tx]) mustHandle(m postrider.Message, want inbox.Verdict) {
	s.t.Helper()
	got, err := s.handle(m)
	s.wantVerdicts(got, err, want)
}

// fail makes the first attempt at a message fail, and defers it.
func (s *scene[Tx]) fail(m postrider.Message, back inbox.Deferral) {
	s.t.Helper()
	_, err := s.Store.Handle(s.ctx, consumer, []postrider.Message{m}, false, func(ctx context.Context, tx Tx, _ []int) error {
		return errors.Join(errWork, s.Mark(ctx, tx, "must be undone"))
	})
	var failed *inbox.FailedError
	if !errors.As(err, &failed) || !errors.Is(err, errWork) {
		s.t.Fatalf("got %v, want a FailedError with the error of the work", err)
	}
	s.deferMessage(m, back)
}

func (s *scene[Tx]) deferMessage(m postrider.Message, back inbox.Deferral) {
	s.t.Helper()
	if err := s.Store.Defer(s.ctx, consumer, m, back); err != nil {
		s.t.Fatal(err)
	}
}

// again returns a deferral that is retried after a backoff.
func again(attempts int, pause time.Duration) inbox.Deferral {
	return inbox.Deferral{Status: feeds.StatusRetry, Blocking: true, Attempts: attempts, Delay: pause, Cause: errWork.Error()}
}

func dead(attempts int) inbox.Deferral {
	return inbox.Deferral{Status: feeds.StatusDead, Blocking: true, Attempts: attempts, Cause: errWork.Error()}
}

// attempt retries one message that is due. It calls work before it writes the effect.
func (s *scene[Tx]) attempt(work func(feeds.Deferred) error, decide func(feeds.Deferred, error) inbox.Deferral) inbox.Attempt {
	s.t.Helper()
	a, err := s.Store.Retry(s.ctx, consumer, func(ctx context.Context, tx Tx, d feeds.Deferred) error {
		if work != nil {
			if err := work(d); err != nil {
				return errors.Join(err, s.Mark(ctx, tx, "must be undone"))
			}
		}
		return s.Mark(ctx, tx, string(d.Payload))
	}, decide)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// mustRetry retries a message successfully and checks that it is the expected one.
func (s *scene[Tx]) mustRetry(text string) {
	s.t.Helper()
	var got string
	a := s.attempt(func(d feeds.Deferred) error { got = string(d.Payload); return nil }, nil)
	if !a.Found || a.Failed != nil || got != text {
		s.t.Fatalf("retried %q (%+v), want %q", got, a, text)
	}
}

func (s *scene[Tx]) mustBeIdle() {
	s.t.Helper()
	a := s.attempt(func(d feeds.Deferred) error { s.t.Errorf("%q is due", d.Payload); return nil }, nil)
	if a.Found || a.Next >= 0 {
		s.t.Fatalf("got %+v, want nothing to do, ever", a)
	}
}

// deferred returns the deferred messages, in order.
func (s *scene[Tx]) deferred() []feeds.Deferred {
	s.t.Helper()
	all, err := s.DeadLetters.List(s.ctx, admin.Filter{Feed: inbox.Feed(consumer)}, nil, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// wantDeferred compares the deferred messages with texts such as "a retry".
func (s *scene[Tx]) wantDeferred(want ...string) {
	s.t.Helper()
	var got []string
	for _, d := range s.deferred() {
		full, err := s.DeadLetters.List(s.ctx, admin.Filter{Feed: inbox.Feed(consumer), ID: d.ID}, nil, 1)
		if err != nil || len(full) != 1 {
			s.t.Fatalf("%d messages, %v", len(full), err)
		}
		got = append(got, string(full[0].Payload)+" "+string(d.Status))
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("deferred: %q, want %q", got, want)
	}
}

func (s *scene[Tx]) act(act admin.Act, id postrider.ID) {
	s.t.Helper()
	n, err := s.DeadLetters.Act(s.ctx, operator, act, admin.Filter{Feed: inbox.Feed(consumer), ID: id}, 0)
	if err != nil || n != 1 {
		s.t.Fatalf("%s: done to %d, %v", act, n, err)
	}
}

func (s *scene[Tx]) wantVerdicts(got []inbox.Verdict, err error, want ...inbox.Verdict) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("verdicts %v, want %v", got, want)
	}
}

func (s *scene[Tx]) wantMarks(want ...string) {
	s.t.Helper()
	if got := s.Marks(s.ctx); !slices.Equal(got, want) {
		s.t.Fatalf("effects %q, want %q", got, want)
	}
}
