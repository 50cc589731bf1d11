package shard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// TestReplayIsARepetition sends deferred messages, one of which belongs to a replay: a broker that
// drops duplicates must be able to tell it from the first delivery, but not a second attempt from
// the first.
func TestReplayIsARepetition(t *testing.T) {
	now := time.Now()
	m := New(Config{BatchSize: 10, CallBytes: 1 << 20, Lease: time.Minute, Timeout: time.Second, NameOf: func(*postrider.Message) string { return "" }}, Start{})
	m.lease.renewed = now
	m.Due([]feeds.Deferred{{Seq: 1, Job: 7}, {Seq: 2}}, now)
	call := m.nextRetry(now)
	if call == nil || len(call.Messages) != 2 || call.Messages[0].Repetition != "replay-7" || call.Messages[1].Repetition != "" {
		t.Fatalf("sends %+v", call)
	}
}

// ready returns a machine that may send for a minute, and waits a millisecond after a failure.
func ready(now time.Time) *Machine {
	policy := Retry{Outage: retry.Policy{First: time.Millisecond, Most: time.Millisecond}, Random: func() float64 { return 0 }}
	m := New(Config{BatchSize: 10, CallBytes: 1 << 20, Lease: time.Minute, Timeout: time.Second, Retry: policy}, Start{})
	m.Blocked(nil)
	m.lease.renewed = now
	return m
}

// aboutToDefer returns a machine that wants to defer both messages of a batch.
func aboutToDefer(now time.Time) (*Machine, *feeds.Batch) {
	m := ready(now)
	b := &feeds.Batch{Messages: []postrider.Message{{ID: postrider.NewID()}, {ID: postrider.NewID()}}}
	m.window.add(b, Size(b))
	for pos := range b.Messages {
		m.want(pos, 0, feeds.Deferral{Status: feeds.StatusRetry})
	}
	return m, b
}

// TestSentDeferred: an attempt at a deferred message counts as sent until the store knows its outcome,
// and no longer.
func TestSentDeferred(t *testing.T) {
	now := time.Now()
	m := ready(now)
	m.failing = true // so that an outage is not recorded
	at := now
	expect := func(what string, want time.Time) {
		t.Helper()
		if got := m.Sent(); !got.Equal(want) {
			t.Errorf("%s: sent at %v, want %v", what, got, want)
		}
	}
	send := func(a Answer) {
		t.Helper()
		at = at.Add(time.Second)
		m.Due([]feeds.Deferred{{Seq: 1}}, at)
		if a.Unsure != nil {
			a.Unsure = []time.Time{at}
		}
		if m.nextRetry(at) == nil {
			t.Fatal("nothing is sent")
		}
		m.Retried(a, at)
		m.due.next = time.Time{}
	}
	expect("at first", time.Time{})
	send(Answer{Errs: []error{postrider.Unavailable(errors.New("down"))}})
	expect("after an outage", time.Time{})
	send(Answer{Errs: []error{errors.New("no answer")}, Unsure: []time.Time{now}})
	first := at
	if len(m.due.done) > 0 {
		t.Fatal("an outage is recorded")
	}
	expect("after no answer", first)
	send(Answer{})
	expect("after a second attempt", first.Add(time.Second))
	if len(m.nextConclusion(at)) != 1 {
		t.Fatal("nothing is recorded")
	}
	expect("while it is recorded", at)
	m.Concluded(nil, errors.New("the store is down"), at)
	m.due.next = time.Time{}
	expect("when it could not be recorded", at)
	m.nextConclusion(at)
	m.Concluded(nil, nil, at)
	expect("when the store knows", time.Time{})
}

// TestUnsureIsKept: what may have arrived stays known when a message joins those of a held name, and
// ages count from before the store was asked.
func TestUnsureIsKept(t *testing.T) {
	asked := time.Now()
	later := asked.Add(time.Minute)
	m := New(Config{BatchSize: 10, CallBytes: 1 << 20, Lease: time.Hour, Timeout: time.Second, NameOf: func(m *postrider.Message) string { return m.Topic }}, Start{})
	m.lease.renewed = later
	m.names.watch("held").held = true
	m.names.held++
	due := func(seq int64, topic string) feeds.Deferred {
		return feeds.Deferred{Seq: seq, Unsure: time.Second, Message: postrider.Message{Topic: topic}}
	}
	m.Due([]feeds.Deferred{due(1, "held"), due(2, "open")}, asked)
	want := asked.Add(-time.Second)
	if len(m.due.done) != 1 || m.due.done[0].Seq != 1 || !m.due.done[0].Sent.Equal(want) {
		t.Errorf("recorded as held: %+v, want since %v", m.due.done, want)
	}
	if call := m.nextRetry(later); call == nil || len(call.Unsure) != 1 || !call.Unsure[0].Equal(want) {
		t.Errorf("sends %+v, want since %v", call, want)
	}
}

// TestSentIsNotDeferred: a message whose deferral was not answered is due nevertheless. Once it has
// been sent, it is not deferred again.
func TestSentIsNotDeferred(t *testing.T) {
	now := time.Now()
	m, b := aboutToDefer(now)
	msgs := b.Messages
	if a := m.Next(now); len(a.Defer) != 2 {
		t.Fatalf("defers %+v", a.Defer)
	}
	m.Deferred(errors.New("no answer"), now)
	m.Due([]feeds.Deferred{{Seq: 1, Message: msgs[0]}}, now)
	if a := m.Next(now); a.Retry == nil {
		t.Fatalf("%+v, want a call for the message that is due", a)
	}
	m.Retried(Answer{}, now)
	now = now.Add(time.Second)
	for a := m.Next(now); ; a = m.Next(now) {
		if len(a.Conclude) > 0 {
			m.Concluded(nil, nil, now)
			continue
		}
		if len(a.Defer) != 1 || a.Defer[0].Batch.Messages[a.Defer[0].Index].ID != msgs[1].ID {
			t.Errorf("defers %+v, want the message that was not sent", a.Defer)
		}
		break
	}
}

// TestDiscardedWhileRefused: once everything that the store could not defer has been discarded, the
// failure is over, and not before.
func TestDiscardedWhileRefused(t *testing.T) {
	now := time.Now()
	m, b := aboutToDefer(now)
	msgs := b.Messages
	over := func() bool {
		return slices.ContainsFunc(m.news.told, func(told Told) bool { return told.Event == CanDefer })
	}
	m.Exclude([]postrider.ID{postrider.NewID()}) // another one
	m.Next(now)
	m.Deferred(errors.New("no answer"), now)
	for n := range msgs {
		m.Exclude([]postrider.ID{msgs[n].ID})
		m.Next(now)
		if want := n == 1; over() != want || (m.deferrals.failures == 0) != want {
			t.Errorf("with %d discarded: over %t, %d failures", n+1, over(), m.deferrals.failures)
		}
	}
	m = ready(now)
	m.window.add(b, Size(b))
	m.want(0, 0, feeds.Deferral{Status: feeds.StatusRetry})
	m.Exclude([]postrider.ID{msgs[0].ID})
	if a := m.Next(now); len(a.Defer) > 0 || over() {
		t.Errorf("without a failure: defers %+v, told that it is over: %t", a.Defer, over())
	}
}

// TestSliceWantsNothingDue: who has only a slice of a shard leaves deferred messages to its owner.
func TestSliceWantsNothingDue(t *testing.T) {
	now := time.Now()
	for _, slice := range []bool{false, true} {
		m := ready(now)
		m.cfg.Slice = slice
		if _, ok := m.WantsDue(now); ok == slice {
			t.Errorf("slice %t: wants deferred messages: %t", slice, ok)
		}
	}
}

// TestDominantTenant: a tenant dominates with three quarters of the messages; those without a tenant
// never do.
func TestDominantTenant(t *testing.T) {
	for _, c := range []struct {
		tenant string
		share  int
		want   string
	}{{"a", 100, "a"}, {"a", 75, "a"}, {"a", 74, ""}, {"", 100, ""}} {
		var w window
		b := &feeds.Batch{Messages: make([]postrider.Message, 100)}
		for i := range b.Messages {
			if b.Messages[i].TenantID = "b"; i < c.share {
				b.Messages[i].TenantID = c.tenant
			}
		}
		w.add(b, 0)
		if got := w.dominantTenant(); got != c.want {
			t.Errorf("%d %% of %q: got %q", c.share, c.tenant, got)
		}
	}
}

// TestMayPass: during an outage, a message may go to a name that is not known to fail; if there is
// only one name, it may not.
func TestMayPass(t *testing.T) {
	msgs := []postrider.Message{{ID: postrider.NewID(), Topic: "a"}}
	var n names
	if n.mayPass(msgs) {
		t.Error("passes although there is only one name")
	}
	n.of = func(m *postrider.Message) string { return m.Topic }
	if !n.mayPass(msgs) {
		t.Error("does not pass to another name")
	}
	if n.watch("a").failed = msgs[0].ID; n.mayPass(msgs) {
		t.Error("passes to a name that fails")
	}
}
