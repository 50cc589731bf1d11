package table

import (
	"testing"

	"github.com/postrider/postrider/store/feeds"
)

// TestSettledDuringARead: a read that has seen a row wait must leave it out, though the row is settled before the read ends.
func TestSettledDuringARead(t *testing.T) {
	t.Parallel()
	l := newOwnedShard(1, 0)
	l.hand([]record{{rowID: "1"}, {rowID: "2"}})
	l.refresh() // a read begins, and sees both
	known := l.known
	l.advance(l.base + 1)
	if !known["1"] || !known["2"] {
		t.Errorf("the read would hand out again all but %v", known)
	}
	l.refresh() // the next one cannot see the first any more, unless an operator has put it back
	if known["1"] || !known["2"] || len(l.inFlight) != 1 || l.inFlight[0].rowID != "2" {
		t.Errorf("left are %v and %+v", known, l.inFlight)
	}
}

// TestSettleInChunks holds that one transaction settles a bounded number of messages, whatever the marks ask for: a longer one would
// be given up by the caller, and tried again for ever.
func TestSettleInChunks(t *testing.T) {
	t.Parallel()
	f := &feed{owned: map[int]*ownedShard{}}
	var marks []feeds.Mark
	for shard := range 3 {
		l := newOwnedShard(1, 0)
		cursor := l.hand(make([]record, settleChunk))
		f.owned[shard] = l
		marks = append(marks, feeds.Mark{Shard: shard, Batch: &feeds.Batch{Shard: shard, Cursor: cursor}, Done: settleChunk - 1})
	}
	for round, rest := 0, true; rest; round++ {
		var moves map[int]*move
		var err error
		if moves, _, rest, err = f.moves(marks); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, m := range moves {
			total += len(m.done)
			m.shard.advance(m.to)
		}
		if total > settleChunk || total == 0 || round > 3 {
			t.Fatalf("round %d settles %d messages, want 1 to %d", round, total, settleChunk)
		}
	}
	for shard, l := range f.owned {
		if l.base != settleChunk-1 {
			t.Errorf("shard %d is settled up to %d, want %d", shard, l.base, settleChunk-1)
		}
	}
}
