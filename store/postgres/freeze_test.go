package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestFreeze verifies that a slot which is no longer written is frozen once, by a user who may, and
// that maintenance does not fail for other users.
func TestFreeze(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, server string) {
		ctx := t.Context()
		dsn := pgtest.Database(t, server) // a database without old transactions of others
		h := newHouse(t, dsn, still)
		for distance := range 8 { // 0 is the current one, and 1 the next
			h.exec(`INSERT INTO @.messages (type, slot, payload) SELECT 't', (@.slot_at(now()) + ` + string(rune('0'+distance)) + `) % @.slot_count(),
				decode(repeat('00', 3000), 'hex') FROM generate_series(1, 100)`)
		}
		// Otherwise autovacuum analyzes these tables during the test, and its snapshot prevents
		// freezing.
		for known := false; !known; { // statistics are delayed
			if err := h.pool.QueryRow(ctx, "SELECT sum(n_mod_since_analyze) >= 800 FROM pg_stat_user_tables WHERE schemaname = $1",
				h.cfg.Schema).Scan(&known); err != nil {
				t.Fatal(err)
			}
		}
		h.exec("ANALYZE")
		frozen := func() (n int, vacuums int64) {
			t.Helper()
			rows, err := h.pool.Query(ctx, h.in(`SELECT d, @.full_xid(c.relfrozenxid, pg_snapshot_xmax(pg_current_snapshot())) > e.newest, pg_stat_get_vacuum_count(c.oid)
				FROM generate_series(0, 7) d JOIN pg_class c ON c.oid = ('@.messages_' || (@.slot_at(now()) + d) % @.slot_count())::regclass
				CROSS JOIN LATERAL @.slot_ends((@.slot_at(now()) + d) % @.slot_count()) e`))
			if err != nil {
				t.Fatal(err)
			}
			var distance int
			var is bool
			var count int64
			_, err = pgx.ForEachRow(rows, []any{&distance, &is, &count}, func() error {
				vacuums += count
				if is {
					n++
					if distance < 2 {
						t.Errorf("slot %d behind the current one is frozen", distance)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return n, vacuums
		}
		maintain := func(h *house) {
			t.Helper()
			if err := h.store.Maintain(ctx); err != nil {
				t.Error(err)
			}
		}
		maintain(h.as(dsn, "relay")) // this role may not vacuum
		if n, _ := frozen(); n != 0 {
			t.Errorf("%d slots are frozen by a relay without the right to", n)
		}
		for want := 1; want <= 6; want++ {
			maintain(h)
			if n, _ := frozen(); n != want {
				t.Fatalf("%d slots are frozen, want %d", n, want)
			}
		}
		for range 3 {
			maintain(h)
		}
		for deadline := time.Now().Add(10 * time.Second); ; { // statistics are delayed
			_, vacuums := frozen()
			if vacuums > 6 {
				t.Fatalf("%d vacuums, want one for each slot", vacuums)
			}
			if vacuums == 6 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d vacuums, want 6", vacuums)
			}
			time.Sleep(50 * time.Millisecond)
		}

		// Simulate a later turn of a slot that could not be emptied.
		h.exec("INSERT INTO @.messages (type, slot) SELECT 't', (@.slot_at(now()) + 4) % @.slot_count()")
		maintain(h)
		if n, _ := frozen(); n != 6 {
			t.Errorf("%d slots are frozen, want 6", n)
		}

		// An old snapshot prevents freezing, and Maintain must not retry every time.
		old, err := h.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		defer old.Rollback(ctx)
		if _, err := old.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
		h.exec("INSERT INTO @.messages (type, slot) SELECT 't', (@.slot_at(now()) + 4) % @.slot_count()")
		for range 5 {
			maintain(h)
		}
		if n, vacuums := frozen(); n != 5 || vacuums > 8 {
			t.Errorf("%d slots are frozen by %d vacuums, want 5 by 8", n, vacuums)
		}
	})
}
