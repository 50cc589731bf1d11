package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// What can happen to a ledger, as statements of one transaction. A restore writes every row again,
// in a cluster with other transaction IDs: to the old ledger, which is far ahead, everything
// written here looks settled long ago. Its clock was also ahead.
const (
	restored = `
		CREATE FUNCTION @.elsewhere(s pg_snapshot) RETURNS pg_snapshot LANGUAGE sql AS $$
		  SELECT CASE WHEN s::text = '1:1:' THEN s ELSE (pg_snapshot_xmin(s)::text::bigint + 1000000000 || ':' ||
		    pg_snapshot_xmax(s)::text::bigint + 1000000000 || ':' ||
		    coalesce((SELECT string_agg((x::text::bigint + 1000000000)::text, ',') FROM pg_snapshot_xip(s) x), ''))::pg_snapshot END $$;
		UPDATE @.identity SET system_identifier = 1;
		UPDATE @.messages SET xid = (xid::text::bigint + 1000000000)::text::xid8;
		UPDATE @.checkpoints SET at = at + interval '1 hour', s1 = @.elsewhere(s1), s2 = @.elsewhere(s2);`
	cloned   = `UPDATE @.identity SET database_oid = 1`
	upgraded = `UPDATE @.identity SET system_identifier = 1; UPDATE @.identity SET row_xid = xmin`
)

func TestRebase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, how string
		stays     bool // delivered messages are still in the log
	}{
		{"restored", restored, false},
		{"restored, with the same xmin by chance", restored + "UPDATE @.identity SET row_xid = xmin", false},
		{"copied within the cluster", cloned, false},
		{"upgraded", upgraded, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pgtest.Each(t, func(t *testing.T, dsn string) {
				h := newHouse(t, dsn, postgres.Layout{Shards: 4})
				both := h.enqueue(50)
				h.mustDeliver("a", both)
				h.mustDeliver("b", both)
				onlyB := h.enqueue(60)
				h.mustDeliver("a", onlyB) // b falls behind

				h.exec(c.how)
				h.mustBeForeign("a")
				written := append(h.enqueue(10), h.enqueueInSavepoint(10)...)
				kept := h.rebase()
				if kept["a"] != len(written) || kept["b"] != len(onlyB)+len(written) {
					t.Errorf("kept %v, want %d for a and %d for b", kept, len(written), len(onlyB)+len(written))
				}
				later := h.enqueue(5)
				h.mustDeliver("a", slices.Concat(written, later))
				h.mustDeliver("b", slices.Concat(onlyB, written, later))
				there := slices.Concat(onlyB, written, later) // a new feed gets what is still there
				if c.stays {
					there = slices.Concat(both, there)
				}
				h.mustDeliver("c", there)
			})
		})
	}
}

// TestRebaseOfAClone verifies that a log which was copied page by page is not rewritten: in a real
// clone of a database, as after pg_upgrade.
func TestRebaseOfAClone(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, server string) {
		ctx := t.Context()
		dsn := pgtest.Database(t, server)
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		delivered := h.enqueue(30)
		h.mustDeliver("f", delivered)
		waiting := h.enqueue(40)
		if err := h.store.Canary(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
		h.pool.Reset() // a template must have no connections

		name := dsn[strings.LastIndex(dsn, "/")+1:]
		name, _, _ = strings.Cut(name, "?")
		admin := pgtest.Pool(t, server)
		if _, err := admin.Exec(ctx, "CREATE DATABASE "+name+"_clone TEMPLATE "+name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := admin.Exec(context.Background(), "DROP DATABASE "+name+"_clone WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
		pool := pgtest.Pool(t, strings.Replace(dsn, name, name+"_clone", 1))
		h = openHouse(t, pool, h.cfg)
		h.mustBeForeign("f")
		written := h.enqueue(5)
		files := func() (all string) {
			t.Helper()
			err := pool.QueryRow(ctx, h.in("SELECT string_agg(pg_relation_filepath(inhrelid), ' ' ORDER BY inhrelid) FROM pg_inherits WHERE inhparent = '@.messages'::regclass")).Scan(&all)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := files()

		// A producer that has written and not committed does not wait, and rebase does not wait for
		// it.
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctx)
		open, ids := messages(1)
		if err := h.outbox.Enqueue(ctx, tx, open...); err != nil {
			t.Fatal(err)
		}
		kept := h.rebase()
		if want := len(waiting) + len(written); kept["f"] != want { // destinations get no canaries
			t.Errorf("kept %v, want %d", kept, want)
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if after := files(); after != before {
			t.Errorf("the log was written again: %s became %s", before, after)
		}
		feed := h.open("f")
		got, err := deliver(ctx, feed)
		if err != nil {
			t.Fatal(err)
		}
		arrived := map[postrider.ID]int{}
		for _, m := range got {
			arrived[m.ID]++
		}
		for _, id := range slices.Concat(waiting, written, ids) {
			if arrived[id] != 1 {
				t.Errorf("a message arrived %d times", arrived[id])
			}
		}
		for _, id := range delivered {
			if arrived[id] != 0 {
				t.Error("a message that was delivered arrived again")
			}
		}
	})
}

// TestRebaseOfManyMessages verifies that the kept messages are read in pages, also by a feed that
// needs few of them.
func TestRebaseOfManyMessages(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		h.mustDeliver("a", nil)
		h.mustDeliver("b", nil)
		both := h.enqueue(3000)
		h.mustDeliver("a", both)
		onlyA := h.enqueue(6000)
		h.exec(restored)
		h.rebase()
		h.mustDeliver("a", onlyA)
		h.mustDeliver("b", slices.Concat(both, onlyA))
	})
}

// TestRebaseWithoutFeeds verifies that a log which no feed has ever read is kept completely for the
// first one.
func TestRebaseWithoutFeeds(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		waiting := h.enqueue(20)
		h.exec(restored)
		h.rebase()
		h.mustDeliver("first", waiting)
	})
}

// TestRebaseWithNothingLeft verifies that rebase works if everything was delivered and no other
// transaction is in flight.
func TestRebaseWithNothingLeft(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		h.mustDeliver("f", h.enqueue(10))
		h.exec(restored)
		if kept := h.rebase(); kept["f"] != 0 {
			t.Errorf("kept %v of what was delivered", kept)
		}
		h.mustDeliver("f", h.enqueue(5))
	})
}

// TestRebaseWithOldNumbers verifies that messages keep their order if the sequence was not copied,
// as with logical replication: new messages then have the same numbers as copied ones.
func TestRebaseWithOldNumbers(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		h.mustDeliver("f", h.enqueue(5))
		brought := h.enqueue(40)
		h.exec(restored)
		h.exec("SELECT setval('@.message_seq', 1, false)")
		written := h.enqueue(40)
		h.rebase()
		h.mustDeliver("f", slices.Concat(brought, written, h.enqueue(3)))
	})
}

// TestRebaseUnderARelay verifies that a relay that was running before the rebase, for instance
// because the database was replaced while it ran, discards everything it knew.
func TestRebaseUnderARelay(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		h.enqueue(3)
		feed := h.open("f")
		defer feed.Close(ctx)
		share, err := feed.Balance(ctx)
		if err != nil {
			t.Fatal(err)
		}
		h.exec(restored)
		h.rebase()
		if _, err := feed.Read(ctx, demand(share)); !errors.Is(err, feeds.ErrReset) {
			t.Errorf("Read after a rebase: %v", err)
		}
		another := h.open("f")
		defer another.Close(ctx)
		if share, err := another.Balance(ctx); err != nil || share.Members != 1 || len(share.Shards) != 1 {
			t.Errorf("the relays of before still count: %+v, %v", share, err)
		}
	})
}

// TestRebaseBesideAWriter verifies that rebase does not deadlock with a writer: one that has read
// the log before it writes, as COPY of some drivers does, and a canary, which has deleted old
// canaries before.
func TestRebaseBesideAWriter(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"looks first": "SELECT FROM @.messages LIMIT 0",
		"canary":      "SELECT @.canary('1 hour'); DELETE FROM @.canaries",
	} {
		t.Run(name, func(t *testing.T) {
			pgtest.Each(t, func(t *testing.T, dsn string) {
				h := newHouse(t, dsn, postgres.Layout{Shards: 2})
				h.mustDeliver("a", h.enqueue(10))
				h.exec("SELECT @.canary('1 hour')")
				h.exec(cloned)
				tx, err := h.pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback(context.Background())
				if _, err := tx.Exec(t.Context(), h.in(first), pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatal(err)
				}
				rebased := make(chan error, 1)
				go func() {
					_, err := h.db.Rebase(t.Context(), admin.By{Who: "test"})
					rebased <- err
				}()
				h.mustWaitForALock("rebase")
				msgs, _ := messages(1)
				if err := h.outbox.Enqueue(t.Context(), tx, msgs...); err != nil {
					t.Fatalf("the writer: %v", err)
				}
				if err := tx.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-rebased; err != nil {
					t.Fatalf("the rebase: %v", err)
				}
				var left int
				err = h.pool.QueryRow(t.Context(), h.in("SELECT count(*) FROM @.messages WHERE id = $1"), msgs[0].ID).Scan(&left)
				if left != 1 || err != nil {
					t.Errorf("the writer's message is there %d times, %v", left, err)
				}
			})
		})
	}
}

func TestRebaseRefusesAnOldSnapshot(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		h.mustFail(pgx.RepeatableRead, "SELECT @.rebase()")
	})
}

// house is a log with a producer and one member for each feed, without a relay.
type house struct {
	t      *testing.T
	pool   *pgxpool.Pool
	cfg    postgres.Config
	db     *postgres.DB
	store  relayStore
	outbox *postgres.Outbox
}

// relayStore is everything that a relay uses of a store.
type relayStore interface {
	feeds.Store
	feeds.Maintainer
	feeds.Canary
}

func newHouse(t *testing.T, dsn string, layout postgres.Layout) *house {
	t.Helper()
	pool := pgtest.Pool(t, dsn)
	return openHouse(t, pool, pgtest.Schema(t, pool, layout))
}

// openHouse opens an existing log.
func openHouse(t *testing.T, pool *pgxpool.Pool, cfg postgres.Config) *house {
	t.Helper()
	db := must(postgres.Open(pool, cfg))(t)
	return &house{t, pool, cfg, db, db.Feeds().(relayStore), db.Outbox()}
}

// in replaces each @ with the schema.
func (h *house) in(sql string) string { return strings.ReplaceAll(sql, "@.", h.cfg.Schema+".") }

// exec runs statements; several run in one transaction.
func (h *house) exec(sql string) {
	h.t.Helper()
	if _, err := h.pool.Exec(h.t.Context(), h.in(sql), pgx.QueryExecModeSimpleProtocol); err != nil {
		h.t.Fatal(err)
	}
}

// mustFail runs a statement at an isolation level that it must refuse.
func (h *house) mustFail(level pgx.TxIsoLevel, sql string) {
	h.t.Helper()
	err := pgx.BeginTxFunc(h.t.Context(), h.pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		_, err := tx.Exec(h.t.Context(), h.in(sql), pgx.QueryExecModeExec)
		return err
	})
	if sqlState(err) != "25001" { // active_sql_transaction
		h.t.Errorf("%s: %v", sql, err)
	}
}

// mustWaitForALock returns when a session that calls a function waits for a lock of another one.
func (h *house) mustWaitForALock(function string) {
	h.t.Helper()
	for waits := false; !waits; {
		err := h.pool.QueryRow(h.t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%' || $2 || '(%')`, h.cfg.Schema, function).Scan(&waits)
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// sqlState returns the SQLSTATE of a server's error, or an empty string.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func messages(n int) ([]postrider.Message, []postrider.ID) {
	msgs, ids := make([]postrider.Message, n), make([]postrider.ID, n)
	for i := range msgs {
		ids[i] = postrider.NewID()
		msgs[i] = postrider.Message{ID: ids[i], Type: "t", Key: fmt.Sprint("k", i%7), Payload: []byte("p")}
	}
	return msgs, ids
}

// enqueue commits n messages of seven keys, in a few transactions, and returns their IDs in order.
func (h *house) enqueue(n int) (ids []postrider.ID) {
	h.t.Helper()
	for n > 0 {
		size := min(n, max(3, n/4))
		msgs, some := messages(size)
		err := pgx.BeginFunc(h.t.Context(), h.pool, func(tx pgx.Tx) error {
			return h.outbox.Enqueue(h.t.Context(), tx, msgs...)
		})
		if err != nil {
			h.t.Fatal(err)
		}
		ids = append(ids, some...)
		n -= size
	}
	return ids
}

// enqueueInSavepoint does the same in a subtransaction, where a row's xmin is not the transaction's
// ID.
func (h *house) enqueueInSavepoint(n int) []postrider.ID {
	h.t.Helper()
	msgs, ids := messages(n)
	err := pgx.BeginFunc(h.t.Context(), h.pool, func(tx pgx.Tx) error {
		return pgx.BeginFunc(h.t.Context(), tx, func(savepoint pgx.Tx) error {
			return h.outbox.Enqueue(h.t.Context(), savepoint, msgs...)
		})
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return ids
}

func (h *house) open(name string) feeds.Feed {
	h.t.Helper()
	feed, err := h.store.Open(h.t.Context(), name, feeds.Member{Name: "test", Lease: time.Minute, Create: true})
	if err != nil {
		h.t.Fatal(err)
	}
	return feed
}

// mustDeliver lets a member read and settle everything. That must be these messages, in the order
// of each key.
func (h *house) mustDeliver(name string, want []postrider.ID) {
	h.t.Helper()
	got, err := deliver(h.t.Context(), h.open(name))
	if err != nil {
		h.t.Fatal(err)
	}
	place := make(map[postrider.ID]int, len(want))
	for i, id := range want {
		place[id] = i
	}
	last := map[string]int{}
	for _, m := range got {
		i, ok := place[m.ID]
		if !ok {
			h.t.Errorf("feed %s: a message that was not to be delivered, or twice", name)
			continue
		}
		delete(place, m.ID)
		if i < last[m.Key] {
			h.t.Errorf("feed %s: key %s is out of order", name, m.Key)
		}
		last[m.Key] = i
	}
	if len(place) > 0 {
		h.t.Errorf("feed %s: %d of %d messages did not arrive", name, len(place), len(want))
	}
}

// deliver reads and settles until nothing is left, and leaves.
func deliver(ctx context.Context, feed feeds.Feed) (all []postrider.Message, err error) {
	defer feed.Close(ctx)
	share, err := feed.Balance(ctx)
	if err != nil {
		return nil, err
	}
	for empty := 0; empty < 3; empty++ { // a page may contain no message for us
		batches, err := feed.Read(ctx, demand(share))
		if err != nil {
			return nil, err
		}
		if len(batches) == 0 {
			continue
		}
		empty = 0
		var marks []feeds.Mark
		for i := range batches {
			all = append(all, batches[i].Messages...)
			marks = append(marks, feeds.Mark{Shard: batches[i].Shard, Batch: &batches[i], Done: len(batches[i].Messages)})
		}
		if _, err := feed.Settle(ctx, marks); err != nil {
			return nil, err
		}
	}
	var marks []feeds.Mark
	for _, shard := range share.Shards {
		marks = append(marks, feeds.Mark{Shard: shard})
	}
	return all, feed.Release(ctx, marks)
}

func demand(share feeds.Share) (want []feeds.Demand) {
	for _, shard := range share.Shards {
		want = append(want, feeds.Demand{Shard: shard, Limit: 700})
	}
	return want
}

func (h *house) mustBeForeign(name string) {
	h.t.Helper()
	feed := h.open(name)
	defer feed.Close(h.t.Context())
	if _, err := feed.Balance(h.t.Context()); !errors.Is(err, feeds.ErrForeign) {
		h.t.Errorf("Balance in a foreign database: %v", err)
	}
}

func (h *house) rebase() map[string]int {
	h.t.Helper()
	plan, err := h.db.PlanRebase(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	all, err := h.db.Rebase(h.t.Context(), admin.By{Who: "test"})
	if err != nil {
		h.t.Fatal(err)
	}
	if !slices.Equal(plan, all) {
		h.t.Errorf("%v was announced, and %v done", plan, all)
	}
	var recorded int
	if err := h.pool.QueryRow(h.t.Context(), h.in("SELECT count(*) FROM @.audit WHERE action = 'rebase' AND who = 'test'")).Scan(&recorded); err != nil || recorded == 0 {
		h.t.Errorf("nobody is recorded: %v", err)
	}
	kept := map[string]int{}
	for _, r := range all {
		kept[r.Feed] = int(r.Unsettled)
	}
	return kept
}

// TestHome verifies that Home keeps the relays of a file-level copy from sending. The first relay
// gives the ledger its home. A relay with another home, or none, owns nothing until a rebase.
func TestHome(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		at := func(home string) *house {
			cfg := h.cfg
			cfg.Home = home
			return openHouse(t, h.pool, cfg)
		}
		first := h.enqueue(10)
		h.mustDeliver("f", first) // as long as no relay has a home
		second := h.enqueue(10)
		at("production").mustDeliver("f", second)
		waiting := h.enqueue(5)
		at("staging").mustBeForeign("f")
		at("").mustBeForeign("f")
		if foreign, err := at("staging").db.Foreign(t.Context()); err != nil || !foreign {
			t.Errorf("staging is foreign: %v, %v", foreign, err)
		}
		if foreign, err := at("production").db.Foreign(t.Context()); err != nil || foreign {
			t.Errorf("production is foreign: %v, %v", foreign, err)
		}

		if kept := at("staging").rebase(); kept["f"] != len(waiting) {
			t.Errorf("kept %v, want %d", kept, len(waiting))
		}
		at("production").mustBeForeign("f") // even before the first relay of staging
		at("staging").mustDeliver("f", waiting)
	})
}

// TestHomeOfTwoRelays verifies that only one of two relays that start at the same time gives the
// ledger its home. The other must not write the row again: after pg_upgrade, the ledger would look
// restored, and some messages would be sent again. And it must not own shards under another home.
func TestHomeOfTwoRelays(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		for home, refused := range map[string]string{"production": "", "staging": "PR001"} {
			h := newHouse(t, dsn, postgres.Layout{Shards: 2})
			first, err := h.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer first.Rollback(context.Background())
			if _, err := first.Exec(t.Context(), h.in("SELECT @.check_home('production')")); err != nil {
				t.Fatal(err)
			}
			second := make(chan error, 1)
			go func() {
				_, err := h.pool.Exec(t.Context(), h.in("SELECT @.check_home('"+home+"')"))
				second <- err
			}()
			h.mustWaitForALock("check_home")
			if err := first.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-second; sqlState(err) != refused {
				t.Errorf("the second, from %s: %v", home, err)
			}
			var same bool
			if err := h.pool.QueryRow(t.Context(), h.in("SELECT row_xid = xmin FROM @.identity WHERE home = 'production'")).Scan(&same); err != nil || !same {
				t.Errorf("the row of the ledger's identity was written again: %v", err)
			}
		}
	})
}
