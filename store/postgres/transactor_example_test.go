package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/uow"
)

// The wiring of an application that uses pgx. Its code holds the transactor as the interface.
func ExampleNewTransactor() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://nobody@127.0.0.1:1/shop?sslmode=disable&connect_timeout=1") // there is none
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	transactor, err := postgres.NewTransactor(pool, postgres.TransactorConfig{Isolation: sql.LevelSerializable, MaxAttempts: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	outbox, err := postgres.NewOutbox(postgres.OutboxConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var db postrider.Transactor[pgx.Tx] = uow.New(transactor, outbox) // or the transactor itself, and no unit of work

	err = db.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", "42")
		return err
	})
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.Is(err, postrider.ErrUncertain):
		fmt.Println("look whether the order is there")
	default:
		fmt.Println("nothing has happened")
	}
	// Output: nothing has happened
}

// With database/sql, any isolation level and any driver of PostgreSQL.
func ExampleNewSQLTransactor() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://nobody@127.0.0.1:1/shop?sslmode=disable&connect_timeout=1") // there is none
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	transactor, err := postgres.NewSQLTransactor(stdlib.OpenDBFromPool(pool), postgres.TransactorConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = transactor.Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", "42")
		return err
	})
	fmt.Println(err != nil, errors.Is(err, postrider.ErrUncertain))
	// Output: true false
}
