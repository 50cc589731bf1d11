package shard

import (
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// TestReplayIsARepetition sends deferred messages, one of which belongs to a replay: a broker that
// drops duplicates must be able to tell it from the first delivery, but not a second attempt from
// the first.
func TestReplayIsARepetition(t *testing.T) {
	now := time.Now()
	m := New(Config{BatchSize: 10, CallBytes: 1 << 20, Lease: time.Minute, Timeout: time.Second, NameOf: func(*postrider.Message) string { return "" }}, Start{})
	m.lease.renewed = now
	m.Due([]feeds.Deferred{{Seq: 1, Job: 7}, {Seq: 2}})
	call := m.nextRetry(now)
	if call == nil || len(call.Messages) != 2 || call.Messages[0].Repetition != "replay-7" || call.Messages[1].Repetition != "" {
		t.Fatalf("sends %+v", call)
	}
}
