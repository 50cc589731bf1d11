// Package idempotency contains the snippets of docs/idempotency.md.
package idempotency

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/postgres"
)

// Order is a client's request.
type Order struct {
	ID   int64  `json:"id"`
	Item string `json:"item"`
}

func userOf(r *http.Request) string {
	user, _, _ := r.BasicAuth()
	return user
}

// Serve adds the endpoint to mux.
func Serve(mux *http.ServeMux, pool *pgxpool.Pool, outbox postrider.Outbox[pgx.Tx]) error {
	//docs:begin handle
	db, err := postgres.Open(pool, postgres.Config{})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	keys, err := idempotency.New(db.IdempotencyKeys(), idempotency.Config{
		Required: true,
		Scope: func(r *http.Request) (idempotency.Scope, error) {
			return idempotency.Scope{Principal: userOf(r)}, nil // what your authentication has found out
		},
	})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume

	placeOrder := func(ctx context.Context, tx pgx.Tx, r *http.Request) (idempotency.Answer, error) {
		var order Order
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

	mux.Handle("POST /orders", keys.Handle(db.Transactor(), placeOrder))
	//docs:end
	mux.Handle("POST /carts", keys.Middleware(ownTransaction(pool, keys)))
	return nil
}

// ownTransaction is a handler with its own transaction.
func ownTransaction(pool *pgxpool.Pool, keys *idempotency.Keys[pgx.Tx]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, wrong := idempotency.JSON(http.StatusCreated, Order{Item: "cart"})
		if wrong != nil {
			http.Error(w, "no answer", http.StatusInternalServerError)
			return
		}
		//docs:begin complete
		err := pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) error {
			//docs:skip the work
			if _, err := tx.Exec(r.Context(), "INSERT INTO orders (item) VALUES ('cart')"); err != nil {
				return err
			}
			//docs:resume
			return keys.Complete(r.Context(), tx, answer)
		})
		//docs:end
		if err != nil {
			http.Error(w, "not done", http.StatusInternalServerError)
			return
		}
		answer.Send(w)
	}
}
