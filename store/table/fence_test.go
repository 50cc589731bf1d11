package table_test

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
)

// TestNobodyTakesAShardThatIsBeingSettled holds a settlement up after it has looked at its lease, until the lease has run out. If
// that look did not lock, another member would take the shard now, and send again what the settlement is about to mark.
func TestNobodyTakesAShardThatIsBeingSettled(t *testing.T) {
	t.Parallel()
	places(t, table.Config{}, func(p *place) {
		p.write("k", 3)
		old, shards := p.joined(time.Second)
		batch := p.read(old, shards)[0]

		unlock := p.lockRows("SELECT id FROM postrider_outbox")
		type answer struct {
			lost []int
			err  error
		}
		settled := make(chan answer)
		go func() {
			lost, err := old.Settle(t.Context(), done(&batch))
			settled <- answer{lost, err}
		}()
		taker := p.open(time.Minute)
		others := without(shards, batch.Shard)
		held := p.shards(taker, func(held []int) bool { return len(held) >= len(others) }) // so all leases are over
		if !slices.Equal(held, others) {
			p.Errorf("another member holds %v while shard %d is being settled", held, batch.Shard)
		}
		unlock()
		if got := <-settled; got.err != nil || len(got.lost) > 0 {
			p.Errorf("the settlement has lost %v, and %v", got.lost, got.err)
		}
		held = p.shards(taker, func(held []int) bool { return len(held) == 8 })
		if batches := p.read(taker, held); len(batches) > 0 {
			p.Errorf("what was settled is sent again: %s", payloads(batches))
		}
	})
}

// TestReplacedMemberChangesNothing lets a member come back after another has taken all it had. Nothing that it does reaches a row.
func TestReplacedMemberChangesNothing(t *testing.T) {
	t.Parallel()
	places(t, table.Config{}, func(p *place) {
		p.write("k", 3)
		old, shards := p.joined(time.Second)
		batch := p.read(old, shards)[0]
		taker, _ := p.joined(time.Minute)
		if share, err := old.Balance(t.Context()); err != nil || len(share.Shards) > 0 {
			p.Errorf("the old member holds %v, and %v", share.Shards, err)
		}
		state := func() []string {
			return append(p.rows("SELECT status FROM postrider_outbox ORDER BY id"),
				p.rows("SELECT concat(shard, ' ', token, ' ', holder) FROM postrider_leases ORDER BY shard")...)
		}
		before := state()
		if lost, err := old.Settle(t.Context(), done(&batch)); err != nil || len(lost) != 1 {
			p.Errorf("the old member lost %v, and %v", lost, err)
		}
		p.must(old.Release(t.Context(), done(&batch)))
		dead := feeds.Deferral{Batch: &batch, Status: feeds.StatusDead}
		if err := old.Defer(t.Context(), []feeds.Deferral{dead}); err == nil {
			p.Error("the old member has deferred a message")
		}
		if after := state(); !slices.Equal(after, before) {
			p.Errorf("the old member has made\n%v of\n%v", after, before)
		}
		p.must(taker.Close(t.Context()))
	})
}
