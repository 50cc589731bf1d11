package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/examples/admissions/paydesk"
	"github.com/postrider/postrider/store/postgres"
)

//go:embed schema.sql
var schema string

// migrate creates the tables and the queues that do not exist yet.
func migrate(ctx context.Context, pool *pgxpool.Pool, db *postgres.DB, set settings) error {
	if err := layOutTables(ctx, pool, db); err != nil {
		return err
	}
	q, err := openQueue(set)
	if err != nil {
		return err
	}
	if err := q.create(ctx, jobVerify, jobPayment, jobMail); err != nil {
		return fmt.Errorf("make the queues: %w", err)
	}
	slog.Info("tables and queues are there")
	return nil
}

// layOutTables creates Postrider's tables, the service's and, because this is an example, those of
// the payment provider.
func layOutTables(ctx context.Context, pool *pgxpool.Pool, db *postgres.DB) error {
	migrator, err := db.Migrator(postgres.Layout{})
	if err != nil {
		return err
	}
	if _, err := migrator.Up(ctx); err != nil {
		return err
	}
	for _, sql := range []string{schema, paydesk.Schema} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("lay out the tables: %w", err)
		}
	}
	return nil
}
