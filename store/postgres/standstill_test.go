package postgres_test

import (
	"testing"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestStandstill verifies that owners keep their shards when the server stood still for longer than
// a lease, and that an owner which alone was silent loses its shards.
func TestStandstill(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, still)
		holder, other := h.open("f"), h.open("f")
		defer holder.Close(ctx)
		defer other.Close(ctx)
		held := func(f feeds.Feed) int {
			t.Helper()
			share, err := f.Balance(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return len(share.Shards)
		}
		if n := held(holder); n != still.Shards {
			t.Fatalf("the only member holds %d shards, want %d", n, still.Shards)
		}

		h.exec(`UPDATE @.checkpoints SET at = at - interval '1 hour', until = until - interval '1 hour';
			UPDATE @.members SET at = at - interval '1 hour', until = until - interval '1 hour'`)
		for range 3 {
			if n := held(other); n != 0 {
				t.Fatalf("another took %d shards at once", n)
			}
		}
		if n := held(holder); n != still.Shards {
			t.Fatalf("the holder has %d shards left, want %d", n, still.Shards)
		}

		h.exec("UPDATE @.members SET at = at - interval '20 seconds', until = until - interval '20 seconds'") // of a lease of one minute
		if n := held(other); n != still.Shards/2 {
			t.Errorf("another took %d shards, want %d", n, still.Shards/2)
		}
	})
}
