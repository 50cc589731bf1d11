package storetest

import (
	"slices"
	"testing"

	"github.com/postrider/postrider"
)

// testDedupKey repeats dedup keys in the same call, in the same transaction, after a rollback and
// after a commit.
func testDedupKey(t *testing.T, h Harness) {
	keyed := func(key string) postrider.Message {
		m := one("k")
		m.DedupKey = key
		return m
	}
	offer := func(tx Tx, want []int, msgs ...postrider.Message) {
		t.Helper()
		repeats, err := tx.Offer(t.Context(), msgs...)
		if err != nil {
			t.Fatalf("Offer: %v", err)
		}
		if !slices.Equal(repeats, want) {
			t.Errorf("Offer left out %v, want %v", repeats, want)
		}
	}

	undone := h.Begin(t)
	offer(undone, nil, keyed("a"), keyed("b"))
	rollback(t, undone)

	msgs := []postrider.Message{keyed("a"), keyed(""), keyed("a"), keyed("b"), keyed(""), keyed("a")}
	tx := h.Begin(t)
	offer(tx, []int{2, 5}, msgs...)
	offer(tx, []int{0}, keyed("b"))
	invalid := keyed("c")
	invalid.Type = ""
	if _, err := tx.Offer(t.Context(), keyed("c"), invalid); err == nil {
		t.Error("Offer of a message without type: no error")
	}
	commit(t, tx)

	other := keyed("c") // the refused call has claimed no key
	tx = h.Begin(t)
	offer(tx, []int{0, 2}, keyed("b"), other, keyed("a"))
	enqueue(t, tx, keyed("a"))
	commit(t, tx)

	r := joinAlone(t, h, "feed", longLease)
	expect(t, r.next(5, 100), []postrider.Message{msgs[0], msgs[1], msgs[3], msgs[4], other})
	r.idle()
}
