// Command embedded is an application that runs its own relay, with a Go function as the
// destination; each commit wakes the relay. Messages that are undelivered at a crash are delivered
// after the restart.
//
//	DATABASE_URL=postgres://postgres@localhost/postgres go run ./embedded
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
	_, err = pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS riders (name text PRIMARY KEY, rides int NOT NULL)")
	check(err)

	// The relay: it starts with the application and stops with it.
	arrived := make(chan string)
	r, err := relay.New(db.Feeds(), postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
		arrived <- fmt.Sprintf("%s %s", m.OrderKey(), m.Payload)
		return nil // confirmed: the relay does not send it again
	}), relay.Config{Feed: "welcome-mail"})
	check(err)
	stopped := make(chan error)
	go func() { stopped <- r.Run(ctx) }()

	// The application: a rider's second message never overtakes the first.
	outbox := db.Outbox()
	for ride := 1; ride <= 3; ride++ {
		check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO riders VALUES ('ann', 1) ON CONFLICT (name) DO UPDATE SET rides = riders.rides + 1")
			if err != nil {
				return err
			}
			return outbox.Enqueue(ctx, tx, postrider.Event("rider.rode", postrider.Aggregate{Type: "rider", ID: "ann"}, map[string]int{"ride": ride}))
		}))
		r.Wake()
	}
	for range 3 {
		fmt.Println("arrived:", <-arrived)
	}
	stop()
	check(<-stopped)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
