package inboxtest

import (
	"bytes"
	"maps"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// blockedKey checks that later messages of a key wait behind one that has failed and keep their
// order, and that other keys continue.
func blockedKey[Tx any](s *scene[Tx]) {
	first := message("k", "1")
	s.fail(first, again(1, 0))
	s.mustHandle(message("k", "2"), inbox.Waiting)
	third := message("k", "3")
	s.mustHandle(third, inbox.Waiting)
	s.mustHandle(third, inbox.Repeated)
	s.mustHandle(first, inbox.Repeated)
	s.mustHandle(message("other", "x"), inbox.Handled)
	s.mustHandle(message("", "y"), inbox.Handled)

	// A message that fails although its key is blocked waits like the others.
	s.deferMessage(message("k", "4"), again(1, 0))
	s.wantDeferred("1 retry", "2 waiting", "3 waiting", "4 waiting")
	blocked, err := s.DeadLetters.Blocked(s.ctx, inbox.Feed(consumer), 10)
	if err != nil || len(blocked) != 1 || blocked[0].Key != "k" || blocked[0].Waiting != 3 {
		s.t.Errorf("%+v, %v", blocked, err)
	}

	for _, text := range []string{"1", "2", "3", "4"} {
		s.mustRetry(text)
	}
	s.mustBeIdle()
	s.wantDeferred()
	s.mustHandle(message("k", "5"), inbox.Handled)
	s.wantMarks("x", "y", "1", "2", "3", "4", "5")

	// Without Blocking, later messages of the key do not wait.
	s.fail(message("k", "6"), inbox.Deferral{Status: feeds.StatusRetry, Attempts: 1, Delay: time.Hour})
	s.mustHandle(message("k", "7"), inbox.Handled)
}

// content checks that every field of a message is kept.
func content[Tx any](s *scene[Tx]) {
	m := postrider.Message{
		ID: postrider.NewID(), Type: "order.placed", AggregateType: "order", AggregateID: "7", Topic: "orders", RoutingKey: "eu",
		TenantID: "t1", Payload: []byte{0, 1, 0xff}, ContentType: "application/x", Headers: map[string]string{"a": "b", "ü": "\"'\\{},"},
		SchemaVersion: 3, SchemaID: "s", DedupKey: "d", OccurredAt: time.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond),
		CorrelationID: "c", CausationID: "e",
	}
	s.fail(m, again(1, 0))
	a := s.attempt(func(d feeds.Deferred) error {
		got := d.Message
		if !bytes.Equal(got.Payload, m.Payload) || !maps.Equal(got.Headers, m.Headers) || !got.OccurredAt.Equal(m.OccurredAt) {
			s.t.Errorf("got %+v, want %+v", got, m)
		}
		if got.ID != m.ID || got.Type != m.Type || got.OrderKey() != "order/7" || got.Topic != m.Topic || got.RoutingKey != m.RoutingKey ||
			got.TenantID != m.TenantID || got.ContentType != m.ContentType || got.SchemaVersion != 3 || got.SchemaID != "s" ||
			got.DedupKey != "d" || got.CorrelationID != "c" || got.CausationID != "e" {
			s.t.Errorf("got %+v, want %+v", got, m)
		}
		if d.Feed != inbox.Feed(consumer) || d.Attempts != 1 || d.LastError != errWork.Error() || d.TriedAt.IsZero() {
			s.t.Errorf("got %+v", d)
		}
		return errWork
	}, func(d feeds.Deferred, err error) inbox.Deferral { return dead(d.Attempts + 1) })
	if !a.Found {
		s.t.Error("not found")
	}

	// A broker may deliver text that no database accepts as text. It must be kept all the same.
	odd := postrider.Message{
		ID: postrider.NewID(), Type: "a\x00b", Key: "k\xff", Topic: "\x00", Headers: map[string]string{"h\x00": "\xfe"}, Payload: nil,
	}
	s.fail(odd, dead(1))
	odd2 := odd
	odd2.ID = postrider.NewID()
	s.mustHandle(odd2, inbox.Waiting)
	all, err := s.DeadLetters.List(s.ctx, admin.Filter{Feed: inbox.Feed(consumer), ID: odd.ID}, nil, 10)
	if err != nil || len(all) != 1 {
		s.t.Errorf("%d messages, %v", len(all), err)
	}
}

func noKey[Tx any](s *scene[Tx]) {
	s.fail(message("", "a"), again(1, time.Hour))
	s.fail(message("", "b"), dead(1))
	s.mustHandle(message("", "c"), inbox.Handled)
	s.wantDeferred("a retry", "b dead")
	blocked, err := s.DeadLetters.Blocked(s.ctx, "", 10)
	if err != nil || len(blocked) != 0 {
		s.t.Errorf("%+v, %v", blocked, err)
	}
}

// deferRecorded checks that Defer ignores a message that is recorded already.
func deferRecorded[Tx any](s *scene[Tx]) {
	m := message("k", "a")
	s.mustHandle(m, inbox.Handled)
	s.deferMessage(m, again(1, 0))
	s.wantDeferred()
	s.mustBeIdle()
	other := message("k", "b")
	s.fail(other, again(1, time.Hour))
	s.deferMessage(other, dead(5))
	s.wantDeferred("b retry")
	s.wantMarks("a")
}
