package memory_test

import (
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/memory"
)

// TestExcludeIsBounded: every Balance returns all exclusions, so their number is limited.
func TestExcludeIsBounded(t *testing.T) {
	s := memory.Open(memory.Config{})
	if err := s.AddFeed(t.Context(), admin.By{}, "f", true); err != nil {
		t.Fatal(err)
	}
	tx := s.Begin()
	ids := make([]postrider.ID, admin.MaxExcluded+1)
	for i := range ids {
		m := postrider.Event("happened", postrider.Aggregate{Type: "thing", ID: "1"}, nil)
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
		if i == admin.MaxExcluded {
			want = admin.ErrTooManyExcluded
		}
		if err := s.Exclude(t.Context(), admin.By{}, admin.Discard, "f", id); !errors.Is(err, want) {
			t.Fatalf("message %d: %v, want %v", i, err, want)
		}
	}
}
