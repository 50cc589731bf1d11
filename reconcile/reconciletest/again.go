package reconciletest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/reconcile"
)

// wantAgain calls Again for keys in a transaction of its own, and checks the numbers that it
// returns.
func (h Harness[Tx]) wantAgain(t *testing.T, c reconcile.Claim, a reconcile.Again, keys []string, want ...int) {
	t.Helper()
	err := h.DB.Do(t.Context(), func(ctx context.Context, tx Tx) error {
		numbers, err := h.Store.Again(ctx, tx, c, keys, a)
		if err == nil && !slices.Equal(numbers, want) {
			t.Errorf("%q: numbers %v, want %v", keys, numbers, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testAgain[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	h.announce(t, "b")
	c := h.claim(t, "a", "me", long)
	at := reconcile.Again{Max: 2}
	h.wantAgain(t, c, at, nil)
	h.wantAgain(t, c, at, []string{"x"}, 0) // missing for the first time
	h.wantAgain(t, c, at, []string{"y", "x"}, 0, 1)
	h.wantAgain(t, c, at, []string{"x", "y"}, 2, 1)
	h.wantAgain(t, c, at, []string{"x", "y"}, 0, 2) // limit reached
	h.wantAgain(t, c, at, []string{"x", "y"}, 0, 0)
	h.wantAgain(t, h.claim(t, "b", "me", long), at, []string{"x"}, 0) // jobs count independently
	slow := reconcile.Again{Max: 2, After: time.Hour}
	h.wantAgain(t, c, slow, []string{"z", `quote "' \`, "ü\u2028"}, 0, 0, 0)
	h.wantAgain(t, c, slow, []string{"z", `quote "' \`}, 0, 0) // too early
	h.wantAgain(t, c, at, []string{`quote "' \`}, 1)
}

func testAgainAtOnce[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	c := h.claim(t, "a", "me", long)
	at := reconcile.Again{Max: 2, After: time.Hour, AtOnce: true}
	h.wantAgain(t, c, at, []string{"x"}, 1)
	h.wantAgain(t, c, at, []string{"x", "y"}, 0, 1)
	at.After = 0
	h.wantAgain(t, c, at, []string{"x"}, 2)
	h.wantAgain(t, c, at, []string{"x"}, 0)
	h.wantAgain(t, c, reconcile.Again{AtOnce: true}, []string{"never"}, 0)
}

func testAgainIsForgotten[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	c := h.claim(t, "a", "me", long)
	at := reconcile.Again{Max: 1, AtOnce: true}
	h.wantAgain(t, c, at, []string{"x"}, 1)
	if err := h.Store.Finish(t.Context(), c, c.Now, time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	c = h.claim(t, "a", "me", long)
	h.wantAgain(t, c, at, []string{"x"}, 0) // not yet
	time.Sleep(time.Millisecond)
	if err := h.Store.Finish(t.Context(), c, c.Now, 0, ""); err != nil {
		t.Fatal(err)
	}
	h.wantAgain(t, h.claim(t, "a", "me", long), at, []string{"x"}, 1)
}

func testAgainRollsBack[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	c := h.claim(t, "a", "me", long)
	at := reconcile.Again{Max: 1, AtOnce: true}
	undone := errors.New("undone")
	err := h.DB.Do(t.Context(), func(ctx context.Context, tx Tx) error {
		_, err := h.Store.Again(ctx, tx, c, []string{"x"}, at)
		return errors.Join(err, undone)
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	h.wantAgain(t, c, at, []string{"x"}, 1)
}
