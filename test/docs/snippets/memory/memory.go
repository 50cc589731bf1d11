// Package memory contains the snippets of docs/in-memory.md.
package memory

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/postgres"
)

// InMemory wires an outbox in memory.
func InMemory(ctx context.Context, publisher postrider.Publisher) (postrider.Outbox[pgx.Tx], error) {
	//docs:begin memory
	store := memory.Open(memory.Config{})
	outbox := memory.Outbox[pgx.Tx](store) // the line to swap
	dispatcher, err := relay.New(store, publisher, relay.Config{PollMax: 200 * time.Millisecond, BatchSize: 50})
	//docs:skip
	if err != nil {
		return nil, err
	}
	//docs:resume
	go dispatcher.Run(ctx) // start; stop by ending ctx
	//docs:end
	return outbox, nil
}

// InDatabase wires the database's outbox instead.
func InDatabase(ctx context.Context, pool *pgxpool.Pool, publisher postrider.Publisher) (postrider.Outbox[pgx.Tx], error) {
	//docs:begin database
	db, err := postgres.Open(pool, postgres.Config{})
	//docs:skip
	if err != nil {
		return nil, err
	}
	//docs:resume
	outbox := db.Outbox()
	store := db.Feeds()
	//docs:end
	dispatcher, err := relay.New(store, publisher, relay.Config{})
	if err != nil {
		return nil, err
	}
	go dispatcher.Run(ctx)
	return outbox, nil
}
