package postgres_test

import (
	"testing"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestSlice splits a tenant off and merges it back. A message of each tenant, and one without a
// tenant, must come once.
func TestSlice(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		write := func(types string) {
			t.Helper()
			h.exec(`INSERT INTO @.messages (type, key, tenant_id)
				SELECT coalesce(tenant, 'none') || '` + types + `', k, tenant FROM unnest('{acme,other,NULL}'::text[]) tenant,
				(SELECT 'k' || i FROM generate_series(1, 50) i WHERE @.shard_of('k' || i, 2) = 0 LIMIT 1) k(k)`)
		}
		s := h.sit("f")
		splitter := s.Feed.(feeds.Splitter)
		var done bool
		if err := h.pool.QueryRow(ctx, h.in("SELECT @.split('f', 0::smallint, 'acme')")).Scan(&done); err != nil || done {
			t.Fatalf("a shard was split under its holder: %v", err)
		}
		write(" 1")
		if done, err := splitter.Split(ctx, feeds.Mark{Shard: 0}, "acme"); err != nil || !done {
			t.Fatal(done, err)
		}
		write(" 2")
		if s.balance(); len(s.share.Shards) != 3 || len(s.share.Slices) != 1 {
			t.Fatalf("got %+v, want both shards and the slice", s.share)
		}
		const slice = 2
		expectTypes(t, "the others", s.read(0, 1), "none 1", "none 2", "other 1", "other 2")
		expectTypes(t, "the tenant", s.read(slice), "acme 1", "acme 2")
		expectTypes(t, "again", s.readAll())
		s.settle()

		write(" 3")
		expectTypes(t, "the others", s.read(0, 1), "none 3", "other 3")
		marks := s.marks()
		if done, err := splitter.Merge(ctx, marks[0], marks[slice]); err != nil || done {
			t.Fatalf("the slice was merged and has messages left: %t, %v", done, err)
		}
		s.latest = map[int]*feeds.Batch{}
		s.balance()
		expectTypes(t, "the tenant", s.readAll(), "acme 3")
		marks = s.marks()
		if done, err := splitter.Merge(ctx, marks[0], marks[slice]); err != nil || !done {
			t.Fatalf("the slice was not merged: %v", err)
		}
		s.latest = map[int]*feeds.Batch{}
		write(" 4")
		s.balance()
		expectTypes(t, "together", s.readAll(), "acme 4", "none 4", "other 4")
	})
}

// TestSleeperOfASlice verifies that a member which was suspended through the end of its slice has
// lost it, even if another slice has its number now.
func TestSleeperOfASlice(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		const slice = 1
		old := h.sit("f")
		if done, err := old.Feed.(feeds.Splitter).Split(ctx, feeds.Mark{Shard: 0}, "acme"); err != nil || !done {
			t.Fatal(done, err)
		}
		old.balance()
		h.exec("INSERT INTO @.messages (type, key, tenant_id) VALUES ('a', 'k', 'acme')")
		expectTypes(t, "the tenant", old.readAll(), "a")
		h.exec("UPDATE @.checkpoints SET at = at - interval '1 hour', until = until - interval '1 hour'")
		h.exec("UPDATE @.members SET at = at - interval '1 hour', until = until - interval '1 hour'")

		s := h.sit("f")
		h.exec("UPDATE @.members SET at = at - interval '20 seconds'") // for so long it has been heard, and the owner has not
		s.balance()
		splitter := s.Feed.(feeds.Splitter)
		expectTypes(t, "the next member", s.readAll(), "a")
		marks := s.marks()
		if done, err := splitter.Merge(ctx, marks[0], marks[slice]); err != nil || !done {
			t.Fatal(done, err)
		}
		s.latest = map[int]*feeds.Batch{}
		s.balance()
		if done, err := splitter.Split(ctx, feeds.Mark{Shard: 0}, "other"); err != nil || !done {
			t.Fatal(done, err)
		}
		s.balance()
		if len(s.share.Slices) != 1 || s.share.Slices[0].Shard != slice || s.share.Slices[0].Tenant != "other" {
			t.Fatalf("got %+v, want the number of the slice before", s.share)
		}
		h.exec("INSERT INTO @.messages (type, key, tenant_id) VALUES ('o', 'k', 'other')")
		if lost, err := old.Settle(ctx, old.marks()); err != nil || len(lost) != 2 {
			t.Errorf("the old member has lost %v, want the shard and the slice; %v", lost, err)
		}
		expectTypes(t, "the new slice", s.readAll(), "o")
		s.settle()
	})
}
