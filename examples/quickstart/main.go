// Command quickstart places an order: the row and the message about it are written in one
// transaction, both or neither. A producer does no more than that; "postrider dev" or "postrider
// relay" carries the message.
//
//	DATABASE_URL="$(bin/postrider dev url)" go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, item text NOT NULL)")
	check(err)
	db, err := postgres.Open(pool, postgres.Config{})
	check(err)
	outbox := db.Outbox()

	var id int64
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "INSERT INTO orders (item) VALUES ('saddle') RETURNING id").Scan(&id); err != nil {
			return err
		}
		payload := map[string]any{"id": id, "item": "saddle"}
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: fmt.Sprint(id)}, payload))
	}))
	fmt.Printf("order %d is placed; its message is on the way\n", id)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
