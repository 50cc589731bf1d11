package inboxtest

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// acts checks that the consumer follows what an operator does to its deferred messages.
func acts[Tx any](s *scene[Tx]) {
	head := func(key string) postrider.Message {
		m := message(key, key+"1")
		s.fail(m, dead(4))
		s.mustHandle(message(key, key+"2"), inbox.Waiting)
		return m
	}
	s.act(admin.Retry, head("r").ID)
	s.mustRetry("r1")
	s.mustRetry("r2")

	s.act(admin.Skip, head("s").ID)
	s.mustRetry("s2")
	s.mustHandle(message("s", "s3"), inbox.Handled)

	parked := head("p")
	s.act(admin.Park, parked.ID)
	s.mustRetry("p2")

	discarded := head("d")
	s.act(admin.Discard, discarded.ID)
	s.mustRetry("d2")
	s.mustHandle(discarded, inbox.Repeated) // it stays discarded

	edited := head("e")
	edited.Payload = []byte("fixed")
	if err := s.DeadLetters.Edit(s.ctx, operator, inbox.Feed(consumer), edited.ID, edited); err != nil {
		s.t.Fatal(err)
	}
	s.mustRetry("fixed")
	s.mustRetry("e2")

	pausing := message("w", "w1")
	s.fail(pausing, again(1, time.Hour))
	s.act(admin.Retry, pausing.ID)
	s.mustRetry("w1")

	s.wantDeferred("s1 dead", "p1 parked")
	s.act(admin.Retry, parked.ID)
	s.mustRetry("p1")
	s.mustBeIdle()
	s.wantMarks("r1", "r2", "s2", "s3", "p2", "d2", "fixed", "e2", "w1", "p1")
}

// actsMeanwhile checks that the effect of a retry is undone if an operator acts on the message
// during that retry.
func actsMeanwhile[Tx any](s *scene[Tx]) {
	undone := func(m postrider.Message, outcome error, decide func()) {
		s.t.Helper()
		s.fail(m, again(1, 0))
		a := s.attempt(func(d feeds.Deferred) error {
			if d.ID != m.ID {
				s.t.Errorf("%q is due", d.Payload)
			}
			decide()
			return outcome
		}, func(feeds.Deferred, error) inbox.Deferral { return again(2, 0) })
		if !a.Found {
			s.t.Error("not found")
		}
	}
	for _, outcome := range []error{nil, errWork} {
		m := message("s", "s1")
		undone(m, outcome, func() { s.act(admin.Skip, m.ID) })
		s.wantDeferred("s1 dead")
		s.act(admin.Discard, m.ID)
	}

	m := message("p", "p1")
	undone(m, nil, func() {
		s.mustHandle(message("p", "p2"), inbox.Waiting)
		s.act(admin.Park, m.ID)
	})
	s.mustRetry("p2")
	s.wantDeferred("p1 parked")
	s.act(admin.Discard, m.ID)

	m = message("r", "r1")
	undone(m, nil, func() { s.act(admin.Retry, m.ID) })
	s.mustRetry("r1") // the operator reset its attempts

	m = message("d", "d1")
	undone(m, nil, func() { s.act(admin.Skip, m.ID); s.act(admin.Discard, m.ID) })
	s.wantDeferred()

	m = message("e", "e1")
	undone(m, nil, func() {
		s.act(admin.Park, m.ID)
		edited := m
		edited.Payload = []byte("fixed")
		if err := s.DeadLetters.Edit(s.ctx, operator, inbox.Feed(consumer), m.ID, edited); err != nil {
			s.t.Error(err)
		}
	})
	s.mustRetry("fixed")
	s.mustBeIdle()
	s.wantMarks("p2", "r1", "fixed")
}
