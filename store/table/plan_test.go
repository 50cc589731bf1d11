package table_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestReadPassesNothingDelivered has PostgreSQL believe that most rows wait, when all are delivered: a read must not walk past them.
func TestReadPassesNothingDelivered(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		s := tabletest.Postgres(t, dsn)
		tabletest.Migrate(t, s, table.Config{})
		s.DB.SetMaxOpenConns(1) // so that the session which reads is the one that reports
		for _, statement := range []string{
			`INSERT INTO postrider_outbox (type, order_key, payload) SELECT 't', 'k' || i % 100, '' FROM generate_series(1, 20000) i`,
			`ANALYZE postrider_outbox`,
			`UPDATE postrider_outbox SET status = 'published', published_at = now()`,
		} {
			if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		feed, err := newStore(t, s, table.Config{Dialect: s.Dialect}).Open(t.Context(), "feed", feeds.Member{Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		share, err := feed.Balance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var want []feeds.Demand
		for _, shard := range share.Shards {
			want = append(want, feeds.Demand{Shard: shard, Limit: 100})
		}
		before := pkeyRead(t, s)
		if batches, err := feed.Read(t.Context(), want); err != nil || len(batches) > 0 {
			t.Fatalf("got %d batches, and %v; want none", len(batches), err)
		}
		if passed := pkeyRead(t, s) - before; passed > 1000 {
			t.Errorf("the read has passed %d delivered rows", passed)
		}
	})
}

// pkeyRead is how many entries of the primary key were read so far.
func pkeyRead(t *testing.T, s tabletest.Server) (n int) {
	t.Helper()
	_, err := s.DB.ExecContext(t.Context(), "SELECT pg_stat_force_next_flush()")
	if err == nil {
		err = s.DB.QueryRowContext(t.Context(), `SELECT idx_tup_read FROM pg_stat_user_indexes
			WHERE schemaname = current_schema AND indexrelname = 'postrider_outbox_pkey'`).Scan(&n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
