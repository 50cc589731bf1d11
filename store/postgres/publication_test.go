package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestPublicationOfAllTables verifies that housekeeping works under a publication of all tables,
// such as Debezium creates: the server then refuses to update or delete in a table without a
// replica identity.
func TestPublicationOfAllTables(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, pgtest.Database(t, dsn), still)
		h.exec("CREATE PUBLICATION everything FOR ALL TABLES") // a warning if wal_level is not logical; the checks are the same
		rows, err := h.pool.Query(t.Context(), "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'", h.cfg.Schema)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(tables) < 20 {
			t.Fatal(tables, err)
		}
		for _, table := range tables {
			switch _, err := h.pool.Exec(t.Context(), "DELETE FROM "+table+" WHERE false"); sqlState(err) {
			case "", "42501": // no role may delete from the audit log
			default:
				t.Error(err)
			}
		}

		h.mustDeliver("f", h.enqueue(20))
		for range 2 {
			if err := h.store.Canary(t.Context(), time.Nanosecond); err != nil {
				t.Error(err)
			}
			h.exec(`UPDATE @.canaries SET at = at - interval '1 hour'; UPDATE @.members SET until = until - interval '1 day';
				UPDATE @.checkpoints SET at = at - interval '1 hour'; INSERT INTO @.dedup_keys VALUES ('k', '2001-01-01') ON CONFLICT DO NOTHING`)
			if err := h.store.Maintain(t.Context()); err != nil {
				t.Error(err)
			}
		}
		var left int
		if err := h.pool.QueryRow(t.Context(), h.in("SELECT count(*) FROM @.members, @.dedup_keys")).Scan(&left); err != nil || left > 0 {
			t.Errorf("%d rows were not swept; %v", left, err)
		}
		h.exec(cloned)
		h.rebase()
	})
}

// TestGenerationInAnyTimeZone verifies that a session's time zone does not look like a crash of the
// server.
func TestGenerationInAnyTimeZone(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		feed := h.open("f")
		defer feed.Close(ctx)
		share, err := feed.Balance(ctx)
		if err != nil {
			t.Fatal(err)
		}
		conns := h.pool.AcquireAllIdle(ctx)
		for _, zone := range []string{"Asia/Kolkata", "America/St_Johns"} {
			for _, c := range conns {
				if _, err := c.Exec(ctx, "SET timezone = '"+zone+"'; SET datestyle = 'German'; SET extra_float_digits = 0", pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatal(err)
				}
				c.Release()
			}
			for range 3 { // the second and third read only check for changes
				if _, err := feed.Read(ctx, demand(share)); err != nil {
					t.Errorf("in zone %s: %v", zone, err)
				}
			}
			if _, err := feed.Settle(ctx, []feeds.Mark{{Shard: 0}}); err != nil {
				t.Errorf("in zone %s: %v", zone, err)
			}
			conns = h.pool.AcquireAllIdle(ctx)
		}
		for _, c := range conns {
			c.Release()
		}
	})
}
