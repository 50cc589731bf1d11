package memory_test

import (
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/store/memory"
)

// TestExcludeIsBounded: relays hear of all exclusions with every Balance, so there are not many.
func TestExcludeIsBounded(t *testing.T) {
	s := memory.New(memory.Config{})
	if err := s.AddFeed(t.Context(), desk.By{}, "f", true); err != nil {
		t.Fatal(err)
	}
	tx := s.Begin()
	ids := make([]postrider.ID, desk.MaxExcluded+1)
	for i := range ids {
		m := postrider.Event("happened", "thing", "1", nil)
		ids[i] = m.ID
		if err := s.Enqueue(t.Context(), tx, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		var want error
		if i == desk.MaxExcluded {
			want = desk.ErrTooManyExcluded
		}
		if err := s.Exclude(t.Context(), desk.By{}, desk.Discard, "f", id); !errors.Is(err, want) {
			t.Fatalf("message %d: %v, want %v", i, err, want)
		}
	}
}
