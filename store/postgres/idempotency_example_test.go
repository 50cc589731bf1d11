package postgres_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/postgres"
)

// Save an order, its message and the HTTP answer in one commit, however often the request is sent.
func ExampleDB_IdempotencyKeys() {
	serve := func(ctx context.Context, pool *pgxpool.Pool, userOf func(*http.Request) string) error {
		db, err := postgres.Open(pool, postgres.Config{})
		if err != nil {
			return err
		}
		outbox := db.Outbox()
		keys, err := idempotency.New(db.IdempotencyKeys(), idempotency.Config{
			Required: true,
			Scope: func(r *http.Request) (idempotency.Scope, error) {
				return idempotency.Scope{Principal: userOf(r)}, nil
			},
		})
		if err != nil {
			return err
		}

		placeOrder := func(ctx context.Context, tx pgx.Tx, r *http.Request) (idempotency.Answer, error) {
			var order struct {
				ID   int64  `json:"id"`
				Item string `json:"item"`
			}
			if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
				return idempotency.Answer{}, &idempotency.Problem{Status: http.StatusBadRequest, Title: "Not an order"}
			}
			err := tx.QueryRow(ctx, "INSERT INTO orders (item) VALUES ($1) RETURNING id", order.Item).Scan(&order.ID)
			if err != nil {
				return idempotency.Answer{}, err
			}
			err = outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: fmt.Sprint(order.ID)}, order))
			if err != nil {
				return idempotency.Answer{}, err
			}
			return idempotency.JSON(http.StatusCreated, order)
		}

		mux := http.NewServeMux()
		mux.Handle("POST /orders", keys.Handle(db.Transactor(), placeOrder))
		return http.ListenAndServe(":8080", mux)
	}
	_ = serve
}

// The same for an application with database/sql, and so with sqlx, bun, GORM, ent or sqlc.
func ExampleSQLDB_IdempotencyKeys() {
	open := func(sqlDB *sql.DB, scope func(*http.Request) (idempotency.Scope, error)) (*idempotency.Keys[*sql.Tx], error) {
		db, err := postgres.OpenSQL(sqlDB, postgres.Config{})
		if err != nil {
			return nil, err
		}
		return idempotency.New(db.IdempotencyKeys(), idempotency.Config{Scope: scope})
	}
	_ = open
}
