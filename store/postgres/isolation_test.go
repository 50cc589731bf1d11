package postgres_test

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// atLevel returns an address whose connections have another default isolation level.
func atLevel(dsn, level string) string {
	return dsn + "&default_transaction_isolation=" + url.PathEscape(level)
}

// TestAnyIsolation verifies that relays, housekeeping and operators work if the default of the
// database or role is not READ COMMITTED.
func TestAnyIsolation(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		for _, level := range []string{"repeatable read", "serializable"} {
			t.Run(level, func(t *testing.T) {
				h := newHouse(t, atLevel(dsn, level), still)
				h.exec(`CREATE FUNCTION @.insist() RETURNS trigger LANGUAGE plpgsql AS $$
					BEGIN
					  IF current_setting('transaction_isolation') <> 'read committed' THEN
					    RAISE EXCEPTION '% of % at %', TG_OP, TG_TABLE_NAME, current_setting('transaction_isolation');
					  END IF;
					  RETURN NULL;
					END $$`)
				h.exec(`DO $$
					DECLARE t regclass;
					BEGIN
					  FOR t IN SELECT oid FROM pg_class WHERE relnamespace = '` + h.cfg.Schema + `'::regnamespace AND relkind = 'r'
					           AND relname <> 'dedup_keys' AND relname NOT LIKE 'messages%' LOOP
					    EXECUTE format('CREATE TRIGGER insist AFTER INSERT OR UPDATE OR DELETE ON %s EXECUTE FUNCTION ` + h.cfg.Schema + `.insist()', t);
					  END LOOP;
					END $$`)
				testAnyIsolation(t, h)
			})
		}
	})
}

func testAnyIsolation(t *testing.T, h *house) {
	ctx := t.Context()
	var first sync.WaitGroup
	for range 4 { // at the same time, each as a process of its own
		store := openHouse(t, h.pool, h.cfg).store
		first.Go(func() {
			feed, err := store.Open(ctx, "f", feeds.Member{Name: "m", Lease: time.Minute, Create: true})
			if err == nil {
				_, err = deliver(ctx, feed)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	first.Wait()
	commit := func(sql string) {
		t.Helper()
		h.exec("BEGIN ISOLATION LEVEL READ COMMITTED; " + sql + "; COMMIT")
	}
	h.exec(fill)
	h.deliverAll("f")
	h.mustReclaim(true)
	commit("UPDATE @.members SET until = until - interval '1 day'; UPDATE @.checkpoints SET at = at - interval '1 hour'")
	for range 2 {
		if err := h.store.Canary(ctx, time.Nanosecond); err != nil {
			t.Error(err)
		}
		if err := h.store.Maintain(ctx); err != nil {
			t.Error(err)
		}
	}

	ids := h.enqueue(20)
	h.addDeadLetter("f")
	d := h.db.Admin()
	by := admin.By{Who: "ann", Why: "a test"}
	if n, err := d.Act(ctx, by, admin.Discard, admin.Filter{Feed: "f"}, 0); err != nil || n != 1 {
		t.Errorf("discarded %d dead letters; %v", n, err)
	}
	if err := d.PauseFeed(ctx, by, "f", true); err != nil {
		t.Error(err)
	}
	if _, err := d.Rewind(ctx, by, "f", admin.Point{ID: ids[0]}); err != nil {
		t.Error(err)
	}
	commit(cloned)
	h.rebase()
}

// TestStoreAtAnyIsolation runs the whole suite.
func TestStoreAtAnyIsolation(t *testing.T) {
	need.Long(t, "the suite of the store, twice")
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		t.Run("repeatable read", func(t *testing.T) { runSuite(t, atLevel(dsn, "repeatable read")) })
		t.Run("serializable", func(t *testing.T) { runSuite(t, atLevel(dsn, "serializable")) })
	})
}

// addDeadLetter makes the next message of a feed a dead letter, as a relay does.
func (h *house) addDeadLetter(name string) {
	h.t.Helper()
	ctx := h.t.Context()
	feed := h.open(name)
	defer feed.Close(ctx)
	share, err := feed.Balance(ctx)
	if err != nil || len(share.Shards) != still.Shards {
		h.t.Fatal(share, err)
	}
	batches, err := feed.Read(ctx, demand(share))
	if err != nil || len(batches) == 0 {
		h.t.Fatal(batches, err)
	}
	deferrer := feed.(feeds.Deferrer)
	err = deferrer.Defer(ctx, []feeds.Deferral{{Batch: &batches[0], Index: 0, Status: feeds.StatusRetry, Blocking: true}})
	if err != nil {
		h.t.Error(err)
	}
	due, err := deferrer.Due(ctx, feeds.DueRequest{Shards: share.Shards, Limit: 10})
	if err != nil || len(due.Messages) != 1 {
		h.t.Fatal(due, err)
	}
	if _, err := deferrer.Conclude(ctx, []feeds.Conclusion{{Shard: due.Messages[0].Shard, Seq: due.Messages[0].Seq, Status: feeds.StatusDead}}); err != nil {
		h.t.Error(err)
	}
}
