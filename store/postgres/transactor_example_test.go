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
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/transactor"
	"github.com/postrider/postrider/store/unitofwork"
)

// The wiring of an application that uses pgx. The application keeps the transactor as an interface.
func ExampleDB_Transactor() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://nobody@127.0.0.1:1/shop?sslmode=disable&connect_timeout=1") // no server is there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	db, err := postgres.Open(pool, postgres.Config{
		Transactor: transactor.Config{Isolation: sql.LevelSerializable, Retry: retry.Policy{Attempts: 10}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var work postrider.Transactor[pgx.Tx] = unitofwork.New(db.Transactor(), db.Outbox()) // or the transactor itself, without a unit of work

	err = work.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
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

// With database/sql, any isolation level and any PostgreSQL driver.
func ExampleSQLDB_Transactor() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://nobody@127.0.0.1:1/shop?sslmode=disable&connect_timeout=1") // no server is there
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	db, err := postgres.OpenSQL(stdlib.OpenDBFromPool(pool), postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = db.Transactor().Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", "42")
		return err
	})
	fmt.Println(err != nil, errors.Is(err, postrider.ErrUncertain))
	// Output: true false
}
