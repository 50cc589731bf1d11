// Command databasesql writes an order and its message in one database/sql transaction. Everything
// built on *sql.Tx works the same way: sqlx, bun, GORM, ent, sqlc.
//
//	DATABASE_URL=postgres://postgres@localhost/postgres go run ./databasesql
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // for the relay
	check(err)
	defer pool.Close()
	sqlDB := stdlib.OpenDBFromPool(pool) // for the application: sql.Open with any driver will do
	db, err := postgres.Open(pool, postgres.Config{})
	check(err)
	migrator, err := db.Migrator(postgres.Layout{})
	check(err)
	_, err = migrator.Up(ctx)
	check(err)
	_, err = sqlDB.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, item text NOT NULL)")
	check(err)

	producer, err := postgres.OpenSQL(sqlDB, postgres.Config{})
	check(err)
	check(placeOrder(ctx, sqlDB, producer.Outbox(), "bridle"))

	r, err := relay.New(db.Feeds(), postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
		fmt.Printf("arrived: %s %s\n", m.Type, m.Payload)
		stop() // one message is enough for this example
		return nil
	}), relay.Config{})
	check(err)
	check(r.Run(ctx))
}

// placeOrder writes the order and the message, or neither.
func placeOrder(ctx context.Context, sqlDB *sql.DB, outbox postrider.Outbox[*sql.Tx], item string) error {
	tx, err := sqlDB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, after an error the first error counts
	var id int64
	if err := tx.QueryRowContext(ctx, "INSERT INTO orders (item) VALUES ($1) RETURNING id", item).Scan(&id); err != nil {
		return err
	}
	payload := map[string]any{"id": id, "item": item}
	if err := outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: fmt.Sprint(id)}, payload)); err != nil {
		return err
	}
	return tx.Commit()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
