package storetest

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// texts are the fields that postrider.MaxText limits.
var texts = map[string]func(*postrider.Message) *string{
	"Type":          func(m *postrider.Message) *string { return &m.Type },
	"AggregateType": func(m *postrider.Message) *string { return &m.AggregateType },
	"AggregateID":   func(m *postrider.Message) *string { return &m.AggregateID },
	"Key":           func(m *postrider.Message) *string { return &m.Key },
	"Topic":         func(m *postrider.Message) *string { return &m.Topic },
	"RoutingKey":    func(m *postrider.Message) *string { return &m.RoutingKey },
	"TenantID":      func(m *postrider.Message) *string { return &m.TenantID },
	"ContentType":   func(m *postrider.Message) *string { return &m.ContentType },
	"SchemaID":      func(m *postrider.Message) *string { return &m.SchemaID },
	"DedupKey":      func(m *postrider.Message) *string { return &m.DedupKey },
	"CorrelationID": func(m *postrider.Message) *string { return &m.CorrelationID },
	"CausationID":   func(m *postrider.Message) *string { return &m.CausationID },
}

// Noise returns a text of n bytes that cannot be compressed. An index would compress a repeated
// letter and so accept a longer text.
func Noise(n int) string {
	b := make([]byte, (n+1)/2)
	for i := range b {
		b[i] = byte(rand.Int())
	}
	return hex.EncodeToString(b)[:n]
}

// testLimits writes every text one byte below its limit, at it, and above it.
func testLimits(t *testing.T, h Harness) {
	var accepted []postrider.Message
	for name, field := range texts {
		for _, size := range []int{postrider.MaxText - 1, postrider.MaxText, postrider.MaxText + 1} {
			m := postrider.Message{ID: postrider.NewID(), Type: "storetest.limits", SchemaVersion: 1}
			if *field(&m) = Noise(size); name == "AggregateType" {
				m.AggregateID = "1"
			}
			tx := h.Begin(t)
			err := tx.Enqueue(t.Context(), m)
			if size > postrider.MaxText {
				var invalid *postrider.InvalidError
				if !errors.As(err, &invalid) || invalid.Field != name {
					t.Errorf("%s of %d bytes: %v, want an InvalidError about it", name, size, err)
				}
				rollback(t, tx)
				continue
			}
			if err != nil {
				t.Fatalf("%s of %d bytes: %v", name, size, err)
			}
			commit(t, tx)
			accepted = append(accepted, m)
		}
	}
	got := make(map[postrider.ID]postrider.Message)
	for _, m := range flatten(joinAlone(t, h, "feed", longLease).next(len(accepted), 100)) {
		got[m.ID] = m
	}
	for _, want := range accepted {
		m := got[want.ID]
		for name, field := range texts {
			if *field(&m) != *field(&want) && name != "Key" { // part of an aggregate may have become the key
				t.Errorf("%s: %d bytes arrived as %d", name, len(*field(&want)), len(*field(&m)))
			}
		}
		if m.OrderKey() != want.OrderKey() {
			t.Errorf("the key of %d bytes arrived as one of %d", len(want.OrderKey()), len(m.OrderKey()))
		}
	}
}

// testAdminLongest defers the longest messages, finds them by every filter, and acts on them.
func testAdminLongest(t *testing.T, h Harness) {
	r := joinAlone(t, h, "feed", longLease)
	msgs := make([]postrider.Message, 3)
	longest := postrider.Message{SchemaVersion: 1}
	for name, field := range texts {
		if name != "Key" { // the derived key is twice as long
			*field(&longest) = Noise(postrider.MaxText)
		}
	}
	for i := range msgs {
		msgs[i] = longest
		msgs[i].ID, msgs[i].DedupKey = postrider.NewID(), Noise(postrider.MaxText)
	}
	write(t, h, msgs...)
	batches := r.next(len(msgs), 100)
	r.deferSome(batches, asKey(feeds.Deferral{Status: feeds.StatusDead, Attempts: 1, Cause: "refused"}))
	r.settle(batches...)
	if keys := r.blocked(); len(keys) != 1 || keys[0] != longest.OrderKey() {
		t.Errorf("%d keys are blocked, want the one of %d bytes", len(keys), len(longest.OrderKey()))
	}
	dead := []feeds.Status{feeds.StatusDead}
	for name, filter := range map[string]admin.Filter{
		"ID":     {ID: msgs[0].ID},
		"Type":   {Type: longest.Type, Statuses: dead},
		"Topic":  {Topic: longest.Topic, Statuses: dead},
		"Key":    {Key: longest.OrderKey(), Statuses: dead},
		"Tenant": {Tenant: longest.TenantID, Statuses: dead},
		"Head":   {Key: longest.OrderKey(), Head: true},
	} {
		if got := list(t, h, filter); len(got) != 1 || got[0].ID != msgs[0].ID {
			t.Errorf("by %s: found %d, want the dead one", name, len(got))
		}
	}
	keys, err := h.Admin.Blocked(t.Context(), "feed", 10)
	if err != nil || len(keys) != 1 || keys[0].Waiting != 2 || keys[0].Key != longest.OrderKey() {
		t.Errorf("blocked: %d keys, %v; want one with two that wait", len(keys), err)
	}
	act(t, h, admin.Retry, admin.Filter{Key: longest.OrderKey(), Statuses: dead}, 1)
	due := r.due(10).Messages
	expectDeferred(t, due, msgs...)
	r.conclude(feeds.Conclusion{Shard: due[0].Shard, Seq: due[0].Seq, Status: feeds.StatusDead, Attempts: 2, Cause: "refused"})
	act(t, h, admin.Discard, admin.Filter{ID: msgs[0].ID}, 1)
	due = r.due(10).Messages
	expectDeferred(t, due, msgs[1:]...)
	if free := r.conclude(delivered(due...)...); len(free) != 1 {
		t.Errorf("%d keys are free, want one", len(free))
	}
}
