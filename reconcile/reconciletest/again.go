package reconciletest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/reconcile"
)

// told asks for keys in a transaction of its own, and wants these numbers.
func (h Harness[Tx]) told(t *testing.T, c reconcile.Claim, a reconcile.Again, keys []string, want ...int) {
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
	h.told(t, c, at, nil)
	h.told(t, c, at, []string{"x"}, 0) // missed for the first time
	h.told(t, c, at, []string{"y", "x"}, 0, 1)
	h.told(t, c, at, []string{"x", "y"}, 2, 1)
	h.told(t, c, at, []string{"x", "y"}, 0, 2) // enough
	h.told(t, c, at, []string{"x", "y"}, 0, 0)
	h.told(t, h.claim(t, "b", "me", long), at, []string{"x"}, 0) // other jobs count for themselves
	slow := reconcile.Again{Max: 2, After: time.Hour}
	h.told(t, c, slow, []string{"z", `quote "' \`, "ü\u2028"}, 0, 0, 0)
	h.told(t, c, slow, []string{"z", `quote "' \`}, 0, 0) // too early
	h.told(t, c, at, []string{`quote "' \`}, 1)
}

func testAgainAtOnce[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	c := h.claim(t, "a", "me", long)
	at := reconcile.Again{Max: 2, After: time.Hour, AtOnce: true}
	h.told(t, c, at, []string{"x"}, 1)
	h.told(t, c, at, []string{"x", "y"}, 0, 1)
	at.After = 0
	h.told(t, c, at, []string{"x"}, 2)
	h.told(t, c, at, []string{"x"}, 0)
	h.told(t, c, reconcile.Again{AtOnce: true}, []string{"never"}, 0)
}

func testAgainIsForgotten[Tx any](t *testing.T, h Harness[Tx]) {
	h.announce(t, "a")
	c := h.claim(t, "a", "me", long)
	at := reconcile.Again{Max: 1, AtOnce: true}
	h.told(t, c, at, []string{"x"}, 1)
	if err := h.Store.Finish(t.Context(), c, c.Now, time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	c = h.claim(t, "a", "me", long)
	h.told(t, c, at, []string{"x"}, 0) // not yet
	time.Sleep(time.Millisecond)
	if err := h.Store.Finish(t.Context(), c, c.Now, 0, ""); err != nil {
		t.Fatal(err)
	}
	h.told(t, h.claim(t, "a", "me", long), at, []string{"x"}, 1)
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
	h.told(t, c, at, []string{"x"}, 1)
}
