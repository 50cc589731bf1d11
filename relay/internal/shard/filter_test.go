package shard

import (
	"errors"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// TestLeftOut: messages that the destination is not meant to get say nothing about it. While it is
// down nothing is deferred, however many of them pass, and a stop has nothing to defer either.
func TestLeftOut(t *testing.T) {
	now := time.Now()
	m := ready(now)
	m.cfg.NameOf = func(m *postrider.Message) string { return m.Topic }
	m.names.of = m.cfg.NameOf
	m.cfg.Sends = func(m *postrider.Message) bool { return m.Topic == "mine" }
	read := func() {
		b := &feeds.Batch{}
		for i := range 6 {
			b.Messages = append(b.Messages, postrider.Message{ID: postrider.NewID(), Key: "k", Topic: []string{"mine", "other"}[i%2]})
		}
		b.Messages[5].DeliverAfter = now.Add(time.Hour) // of another feed: not to be scheduled in this one
		m.Read(b, Size(b))
	}
	for range 20 {
		read()
		a := m.Next(now)
		if len(a.Defer) > 0 {
			t.Fatalf("defers %d messages", len(a.Defer))
		}
		if a.Publish == nil {
			t.Fatal("nothing is sent")
		}
		errs := make([]error, len(a.Publish.Messages))
		for i := range errs {
			if a.Publish.Messages[i].Topic != "mine" {
				t.Fatal("sends what the destination does not get")
			}
			errs[i] = postrider.Unavailable(errors.New("down"))
		}
		m.Published(Answer{Errs: errs}, now)
		if s := m.Standing(); !s.Failing || m.names.calls > 0 || m.Count.Published > 0 {
			t.Fatalf("takes the destination for one that works: %+v", s)
		}
		now = now.Add(time.Second)
		m.lease.renewed = now
	}
	m.Stop(now)
	if a := m.Next(now); len(a.Defer) > 0 || !a.Ended {
		t.Errorf("at the stop: %+v", a)
	}
}
