package bench

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// engine is a store for messages, as the scenarios use it.
type engine interface {
	// hire opens connections for producers.
	hire(ctx context.Context, writers int) (shop, error)
	// open returns the store for a relay, with its own connections. The caller closes them.
	open(ctx context.Context) (_ feeds.Store, closeStore func(), _ error)
}

// shop holds the connections of producers.
type shop interface {
	// commit writes a business row and a message in one transaction.
	commit(ctx context.Context, order, number int64, m postrider.Message) error
	close()
}

// logEngine is the log of package postgres, in the lab's schema.
type logEngine struct{ lab *Lab }

// createOrders creates the business table that producers write to.
const createOrders = `CREATE TABLE @schema@.orders (
  id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer   bigint      NOT NULL,
  cents      bigint      NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
)`

type logShop struct {
	pool   *pgxpool.Pool
	outbox postrider.Outbox[pgx.Tx]
	insert string
}

func (e logEngine) hire(ctx context.Context, writers int) (shop, error) {
	pool, err := e.lab.pool(ctx, writers)
	if err != nil {
		return nil, err
	}
	db, err := e.lab.open(pool)
	if err != nil {
		return nil, err
	}
	return &logShop{pool, db.Outbox(), e.lab.in("INSERT INTO @schema@.orders (customer, cents) VALUES ($1, $2)")}, nil
}

func (c *logShop) close() { c.pool.Close() }

func (c *logShop) commit(ctx context.Context, order, number int64, m postrider.Message) error {
	tx, err := c.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit it does nothing, after an error the first error counts
	if _, err := tx.Exec(ctx, c.insert, order, number); err != nil {
		return err
	}
	if err := c.outbox.Enqueue(ctx, tx, m); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func (e logEngine) open(ctx context.Context) (feeds.Store, func(), error) {
	pool, err := e.lab.pool(ctx, relayConnections)
	if err != nil {
		return nil, nil, err
	}
	db, err := e.lab.open(pool)
	if err != nil {
		return nil, pool.Close, err
	}
	return db.Feeds(), pool.Close, nil
}

// waste returns the number of dead rows in the log and its ledger.
func (e logEngine) waste(ctx context.Context) (n int64, err error) {
	err = e.lab.admin.QueryRow(ctx, `SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables
		WHERE schemaname = $1 AND relname NOT LIKE 'postrider\_%' AND relname NOT LIKE '%orders'`, e.lab.schema).Scan(&n)
	return n, err
}
