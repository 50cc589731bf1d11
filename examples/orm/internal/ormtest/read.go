package ormtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// end is the type of marker messages: when they arrive, everything that was committed before has
// arrived too.
const end = "ormtest.end"

// ends is the number of markers, each with its own key: enough for every shard to get one.
const ends = 64

// messages returns the messages that a relay would read now and that were not returned before.
func (d *Database) messages(t *testing.T) []postrider.Message {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	d.join(ctx, t)
	last := make([]postrider.Message, ends)
	for i := range last {
		last[i] = postrider.Message{Type: end, Key: fmt.Sprint(i)}
	}
	tx := must(d.DB.BeginTx(ctx, nil))
	if err := errors.Join(d.Outbox.Enqueue(ctx, tx, last...), tx.Commit()); err != nil {
		t.Fatal(err)
	}

	var msgs []postrider.Message
	seen, ended := 0, map[int]bool{}
	for pause := time.Tick(5 * time.Millisecond); seen < ends; <-pause {
		for _, batch := range must(d.feed.Read(ctx, d.demands)) {
			for _, m := range batch.Messages {
				if m.Type != end {
					msgs = append(msgs, m)
					continue
				}
				seen++
				ended[batch.Shard] = true
			}
		}
	}
	if seen != ends || len(ended) != len(d.demands) {
		t.Fatalf("%d of %d last messages came, in %d of %d shards", seen, ends, len(ended), len(d.demands))
	}
	return msgs
}

// join makes this process the only member of a feed.
func (d *Database) join(ctx context.Context, t *testing.T) {
	t.Helper()
	if d.feed != nil {
		return
	}
	d.feed = must(d.store.Open(ctx, "test", feeds.Member{Name: "test", Lease: 10 * time.Minute}))
	share := must(d.feed.Balance(ctx))
	if len(share.Shards) == 0 || len(share.Shards) != share.Quota {
		t.Fatalf("holds %v, of %d", share.Shards, share.Quota)
	}
	for _, shard := range share.Shards {
		d.demands = append(d.demands, feeds.Demand{Shard: shard, Limit: 1000})
	}
}
