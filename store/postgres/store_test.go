package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, runSuite)
}

func TestStoreThroughPooler(t *testing.T) {
	t.Parallel()
	pgtest.EachPooled(t, runSuite)
}

func runSuite(t *testing.T, dsn string) {
	pool := pgtest.Pool(t, dsn)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		const shards = 4
		cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: shards})
		store, err := postgres.New(pool, cfg)
		if err != nil {
			t.Fatal(err)
		}
		operator, err := postgres.NewDesk(pool, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Harness{
			Store:  store,
			Shards: shards,
			Begin:  func(t *testing.T) storetest.Tx { return begin(t, pool, cfg) },
			Desk:   operator,
		}
	})
}

// tx joins an outbox and a transaction for the suite.
type tx struct {
	pgx.Tx
	outbox *postgres.Outbox
	t      *testing.T
}

func begin(t *testing.T, pool *pgxpool.Pool, cfg postgres.Config) *tx {
	t.Helper()
	outbox, err := postgres.NewOutbox(postgres.OutboxConfig{Config: cfg})
	if err != nil {
		t.Fatal(err)
	}
	began, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &tx{began, outbox, t}
}

func (x *tx) Enqueue(ctx context.Context, msgs ...postrider.Message) error {
	return x.outbox.Enqueue(ctx, x.Tx, msgs...)
}

func (x *tx) Offer(ctx context.Context, msgs ...postrider.Message) ([]int, error) {
	return x.outbox.Offer(ctx, x.Tx, msgs...)
}

func (x *tx) Commit() error { return x.Tx.Commit(x.t.Context()) }

func (x *tx) Rollback() error { return x.Tx.Rollback(x.t.Context()) }
