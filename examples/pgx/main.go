// Command pgx writes an order and its message in one pgx transaction, and then delivers the message
// to a Go function.
//
//	DATABASE_URL=postgres://postgres@localhost/postgres go run ./pgx
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	defer pool.Close()
	db, err := postgres.Open(pool, postgres.Config{})
	check(err)
	migrator, err := db.Migrator(postgres.Layout{})
	check(err)
	_, err = migrator.Up(ctx)
	check(err)
	_, err = pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, item text NOT NULL)")
	check(err)

	// Write the order and the message, or neither.
	outbox := db.Outbox()
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var id int64
		if err := tx.QueryRow(ctx, "INSERT INTO orders (item) VALUES ('saddle') RETURNING id").Scan(&id); err != nil {
			return err
		}
		payload := map[string]any{"id": id, "item": "saddle"}
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: fmt.Sprint(id)}, payload))
	}))

	// Carry: usually in another process, such as "postrider relay".
	r, err := relay.New(db.Feeds(), postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
		fmt.Printf("arrived: %s %s\n", m.Type, m.Payload)
		stop() // this example has seen enough
		return nil
	}), relay.Config{})
	check(err)
	check(r.Run(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
