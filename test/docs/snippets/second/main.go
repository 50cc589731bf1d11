package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/postgres"
)

type OrderPlaced struct {
	Total int `json:"total"`
}

// charge is called once for each order, in a transaction: the charge, and the memory of the message, are committed together.
func charge(ctx context.Context, tx pgx.Tx, o OrderPlaced) error {
	m, _ := inbox.Message(ctx)
	if o.Total <= 0 {
		return postrider.Permanent(errors.New("nothing to charge")) // no retry can help
	}
	_, err := tx.Exec(ctx, "INSERT INTO charges (order_id, total) VALUES ($1, $2)", m.AggregateID, o.Total)
	if err == nil {
		fmt.Printf("order %s is charged: %d\n", m.AggregateID, o.Total)
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS charges (order_id text, total int)"); err != nil {
		return err
	}
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		return err
	}
	billing, err := inbox.New(db.Inbox(), "billing", inbox.Config{})
	if err != nil {
		return err
	}
	inbox.On(billing, "order.placed", charge)
	orders, err := redis.NewConsumer(redis.Config{URL: "redis://localhost:6379", Name: "order", Group: "billing"})
	if err != nil {
		return err
	}
	fmt.Println("billing is ready")
	return billing.Run(ctx, orders)
}
