// Package pgpostridertest_test verifies that package postridertest works with real transactions,
// relays and inboxes of PostgreSQL, through the ports alone.
package pgpostridertest_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/postridertest"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

type match = postridertest.Match

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestRecord(t *testing.T) {
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		db := must(postgres.Open(pool, cfg))
		t.Run("pgx", func(t *testing.T) {
			testRecord(t, db.Transactor(), postrider.Outbox[pgx.Tx](db.Outbox()))
		})
		t.Run("sql", func(t *testing.T) {
			sqlDB := stdlib.OpenDBFromPool(pool)
			defer sqlDB.Close()
			db := must(postgres.OpenSQL(sqlDB, cfg))
			testRecord(t, db.Transactor(), db.Outbox())
		})
		t.Run("a transaction for each test", func(t *testing.T) {
			outbox := postridertest.Record[pgx.Tx](db.Outbox())
			tx := must(pool.Begin(t.Context()))
			if err := outbox.Enqueue(t.Context(), tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "1"}, nil)); err != nil {
				t.Fatal(err)
			}
			outbox.In(tx).Exactly(t, match{Type: "order.placed"})
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			outbox.RolledBack(tx)
			outbox.RequireNone(t)
		})
	})
}

func testRecord[Tx any](t *testing.T, transactor postrider.Transactor[Tx], own postrider.Outbox[Tx]) {
	outbox := postridertest.Record(own)
	key := t.Name()
	for _, end := range []error{nil, errors.New("no")} {
		err := transactor.Do(t.Context(), func(ctx context.Context, tx Tx) error {
			for range 2 { // the second one is a repetition, unless the first transaction has reported that already
				if err := outbox.Enqueue(ctx, tx, postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: key}, nil)); err != nil {
					return err
				}
			}
			if err := outbox.Enqueue(ctx, tx, postrider.Event("order.paid", postrider.Aggregate{Type: "order", ID: key}, nil)); err != nil {
				return err
			}
			outbox.In(tx).Enqueued(t, match{Type: "order.paid"})
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
	}
	outbox.Exactly(t, match{Type: "order.placed", AggregateID: key}, match{Type: "order.paid"})
}

// A relay crashes after publishing, messages arrive twice, and a consumer crashes before its
// commit, on real tables: each message takes effect once.
func TestFaults(t *testing.T) {
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
		effects := pgx.Identifier{cfg.Schema, "effects"}.Sanitize()
		must(pool.Exec(t.Context(), "CREATE TABLE "+effects+" (id text)"))
		db := must(postgres.Open(pool, cfg))
		outbox := db.Outbox()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return outbox.Enqueue(t.Context(), tx,
				postrider.Event("a", postrider.Aggregate{Type: "order", ID: "1"}, nil), postrider.Event("a", postrider.Aggregate{Type: "order", ID: "2"}, nil), postrider.Event("a", postrider.Aggregate{Type: "order", ID: "3"}, nil))
		})
		if err != nil {
			t.Fatal(err)
		}
		faults := postridertest.Inject(t, postridertest.Faults{
			Crash: postridertest.Nth(2), Duplicate: postridertest.Every(2), LoseAck: postridertest.Nth(1), LoseCommit: postridertest.Nth(2),
		})
		broker := memory.New()
		carry(t, faults, db.Feeds(), broker, 6) // 2 by the first relay, then 3 and a duplicate
		receive(t, faults, db.Inbox(), broker, effects, 3)

		var total, distinct int
		if err := pool.QueryRow(t.Context(), "SELECT count(*), count(DISTINCT id) FROM "+effects).Scan(&total, &distinct); err != nil {
			t.Fatal(err)
		}
		if total != 3 || distinct != 3 {
			t.Errorf("%d effects of %d messages", total, distinct)
		}
		for name, n := range faults.Struck() {
			if n == 0 {
				t.Errorf("%s has not struck", name)
			}
		}
	})
}

// carry runs relays until the broker has n messages.
func carry(t *testing.T, faults *postridertest.Injector, store feeds.Store, broker *memory.Broker, n int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	go func() {
		_, _ = broker.Wait(ctx, n)
		stop()
	}()
	pub := faults.Publisher(broker)
	for lives := 1; ctx.Err() == nil; lives++ {
		process := faults.Process()
		r := must(relay.New(process.Store(store), pub, relay.Config{
			Lease: 500 * time.Millisecond, BalanceInterval: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		}))
		life, end := process.Context(ctx)
		err := r.Run(life)
		end()
		if process.Dead() != (lives == 1) || !process.Dead() && err != nil {
			t.Errorf("life %d: dead %t: %v", lives, process.Dead(), err)
		}
	}
}

// receive runs an inbox until it has handled n messages.
func receive(t *testing.T, faults *postridertest.Injector, store inbox.Store[pgx.Tx], broker *memory.Broker, effects string, n int64) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	in := must(inbox.New(postridertest.InboxStore(faults, store), "billing",
		inbox.Config{Logger: slog.New(slog.DiscardHandler)}))
	in.Handle("*", func(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+effects+" VALUES ($1)", m.AggregateID)
		return err
	})
	go func() {
		for in.Stats().Handled < n || in.Stats().Repeated < 4 { // 3 copies, and the acknowledgement that was lost
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		stop()
	}()
	if err := in.Run(ctx, faults.Consumer(broker.Consumer("", "billing", 0))); err != nil {
		t.Error(err)
	}
	if s := in.Stats(); s.Handled != n || s.Repeated != 4 {
		t.Errorf("%+v", s)
	}
}
