package shard

import (
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// TestDeferredByFormerOwner: a former owner may have deferred a message so late that its key was not
// among the blocked ones that this owner has loaded. Later messages of the key wait for it all the
// same.
func TestDeferredByFormerOwner(t *testing.T) {
	now := time.Now()
	m := ready(now)
	b := &feeds.Batch{Messages: []postrider.Message{
		{ID: postrider.NewID(), Key: "k"}, {ID: postrider.NewID(), Key: "other"}, {ID: postrider.NewID(), Key: "k"}, {ID: postrider.NewID()},
	}, Deferred: []int{0, 3}}
	m.Read(b, Size(b))
	a := m.Next(now)
	if a.Publish == nil || len(a.Publish.Messages) != 1 || a.Publish.Messages[0].Key != "other" {
		t.Fatalf("sends %+v, want only the message of the other key", a.Publish)
	}
	if len(a.Defer) != 1 || a.Defer[0].Index != 2 || a.Defer[0].Status != feeds.StatusWaiting || !a.Defer[0].Blocking {
		t.Errorf("defers %+v, want the second message of the key", a.Defer)
	}
}
