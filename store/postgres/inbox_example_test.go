package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/postgres"
)

type placed struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// A consumer that charges for orders and publishes a message about it. The charge, the message and
// the receipt are one commit.
func ExampleDB_Inbox() {
	consume := func(ctx context.Context, pool *pgxpool.Pool, orders postrider.Consumer) error {
		db, err := postgres.Open(pool, postgres.Config{})
		if err != nil {
			return err
		}
		outbox := db.Outbox()
		billing, err := inbox.New(db.Inbox(), "billing", inbox.Config{})
		if err != nil {
			return err
		}
		inbox.On(billing, "order.placed", func(ctx context.Context, tx pgx.Tx, o placed) error {
			_, err := tx.Exec(ctx, "INSERT INTO charges (order_id, cents) VALUES ($1, $2)", o.Order, o.Cents)
			if err != nil {
				return err
			}
			return outbox.Enqueue(ctx, tx, postrider.Event("order.charged", postrider.Aggregate{Type: "order", ID: o.Order}, o))
		})
		return billing.Run(ctx, orders) // until ctx ends
	}
	fmt.Println(consume(context.Background(), nil, nil))
	// Output: postgres: pool is nil
}

// The same with database/sql and a receive loop of your own: the inbox only records the receipt, in
// your transaction.
func ExampleSQLDB_Inbox() {
	receive := func(ctx context.Context, sqlDB *sql.DB, m postrider.Message) error {
		db, err := postgres.OpenSQL(sqlDB, postgres.Config{})
		if err != nil {
			return err
		}
		received := db.Inbox()
		tx, err := sqlDB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		fresh, err := received.Claim(ctx, tx, "billing", m.ID)
		if errors.Is(err, inbox.ErrLate) {
			return fmt.Errorf("was %s handled before? %w", m.ID, err)
		}
		if err != nil || !fresh {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO charges (message) VALUES ($1)", m.Payload); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(receive(context.Background(), nil, postrider.Message{}))
	// Output: postgres: db is nil
}
