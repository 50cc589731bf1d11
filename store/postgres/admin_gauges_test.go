package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestGaugesOfANewFeed verifies that messages from before a feed began do not count as pending,
// however many there are, and that messages that were in flight then do.
func TestGaugesOfANewFeed(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		h.exec("INSERT INTO @.messages (type) SELECT 't' FROM generate_series(1, 5000)")
		open, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer open.Rollback(t.Context())
		late, _ := messages(3)
		if err := h.outbox.Enqueue(t.Context(), open, late...); err != nil {
			t.Fatal(err)
		}
		d := h.db.Admin()
		if err := d.AddFeed(t.Context(), admin.By{Who: "ann"}, "f", false); err != nil {
			t.Fatal(err)
		}
		expect := func(n int64) {
			t.Helper()
			s, err := d.Gauges(t.Context())
			if err != nil || s.Feeds[0].Pending != (admin.Estimate{N: n, Exact: true}) || s.Feeds[0].Oldest.IsZero() != (n == 0) {
				t.Errorf("got %+v, %v; want %d", s.Feeds[0].Pending, err, n)
			}
		}
		expect(0)
		h.enqueue(20)
		expect(20)
		if err := open.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(23)
	})
}

// TestGaugesOfSlices verifies that slices are shards of their own, and that canaries do not count.
func TestGaugesOfSlices(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		h.deliverAll("f")
		h.exec("SELECT @.split('f', 1::smallint, 'loud')")
		before, err := h.db.Admin().Gauges(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.exec("SELECT @.canary('1 s')")
		h.exec(`INSERT INTO @.messages (type, key, tenant_id) SELECT 't', k, t FROM (
			  SELECT 'k' || i FROM generate_series(1, 100) i WHERE @.shard_of('k' || i, 2) = 1 LIMIT 10) k(k), unnest('{loud,quiet}'::text[]) t`)
		s, err := h.db.Admin().Gauges(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Enqueued - before.Enqueued; n != 20 {
			t.Errorf("20 messages and 2 canaries count as %d", n)
		}
		f := s.Feeds[0]
		want := []admin.Shard{{Shard: 0, Base: 0}, {Shard: 1, Base: 1}, {Shard: 2, Base: 1, Tenant: "loud"}}
		pending := []int64{0, 10, 10}
		if len(f.Shards) != 3 || f.Pending.N != 20 || f.Canary.IsZero() {
			t.Fatalf("got %+v", f)
		}
		for i, l := range f.Shards {
			if l.Shard != want[i].Shard || l.Base != want[i].Base || l.Tenant != want[i].Tenant || l.Pending.N != pending[i] || !l.Pending.Exact {
				t.Errorf("shard %d is %+v", i, l)
			}
		}
		h.exec(restored)
		if s, err := h.db.Admin().Gauges(t.Context()); err != nil || !s.Foreign {
			t.Errorf("in another database: %+v, %v", s, err)
		}
	})
}

// TestHealth checks the figures that are certain.
func TestHealth(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Slots: 5, Period: 90 * time.Minute})
		h.enqueue(10)
		open, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer open.Rollback(t.Context())
		if _, err := open.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
		v, err := h.db.Admin().Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v.Capacity != (admin.Capacity{Slots: 5, Used: 1, Period: 90 * time.Minute}) || v.Schema != h.cfg.Schema || v.OldestTransaction <= 0 ||
			v.OldestSnapshot <= 0 || v.Connections < 2 {
			t.Errorf("got %+v", v)
		}
		named := func(name string) bool {
			return slices.ContainsFunc(v.Tables, func(s admin.TableSize) bool { return s.Name == name && s.Bytes > 0 })
		}
		if !named("messages") || !named("inbox") || named("messages_0") {
			t.Errorf("the tables are %+v", v.Tables)
		}
	})
}
