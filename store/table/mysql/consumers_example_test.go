package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/table/mysql"
)

type charge struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// A consumer that charges for orders, and says so: the charge, the message and the record of what was received are one commit.
func ExampleDB_Inbox() {
	// docs:begin inbox
	consume := func(ctx context.Context, db *sql.DB, orders postrider.Consumer) error {
		own, err := mysql.Open(db, mysql.Config{})
		if err != nil {
			return err
		}
		outbox := own.Outbox()
		billing, err := inbox.New(own.Inbox(), "billing", inbox.Config{})
		if err != nil {
			return err
		}
		inbox.On(billing, "order.placed", func(ctx context.Context, tx *sql.Tx, c charge) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO charges (order_id, cents) VALUES (?, ?)", c.Order, c.Cents)
			if err != nil {
				return err
			}
			return outbox.Enqueue(ctx, tx, postrider.Event("order.charged", postrider.Aggregate{Type: "order", ID: c.Order}, c))
		})
		return billing.Run(ctx, orders) // until ctx ends
	}
	// docs:end
	fmt.Println(consume(context.Background(), nil, nil))
	// Output: mysql: db is nil
}

// The wiring of an application. Its code holds the transactor as the interface.
func ExampleDB_Transactor() {
	// docs:begin transactor
	place := func(ctx context.Context, db *sql.DB, order string) error {
		own, err := mysql.Open(db, mysql.Config{})
		if err != nil {
			return err
		}
		err = own.Transactor().Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (?)", order)
			return err
		})
		if errors.Is(err, postrider.ErrUncertain) {
			return fmt.Errorf("look whether order %s is there: %w", order, err)
		}
		return err // nil: it is there; anything else: it is not
	}
	// docs:end
	fmt.Println(place(context.Background(), nil, "42"))
	// Output: mysql: db is nil
}

// An order and the answer to its sender: one commit, however often the request is sent.
func ExampleDB_IdempotencyKeys() {
	// docs:begin idempotency
	handler := func(db *sql.DB, userOf func(*http.Request) string) (http.Handler, error) {
		own, err := mysql.Open(db, mysql.Config{})
		if err != nil {
			return nil, err
		}
		keys, err := idempotency.New(own.IdempotencyKeys(), idempotency.Config{
			Scope: func(r *http.Request) (idempotency.Scope, error) {
				return idempotency.Scope{Principal: userOf(r)}, nil
			},
		})
		if err != nil {
			return nil, err
		}
		return keys.Handle(own.Transactor(), func(ctx context.Context, tx *sql.Tx, r *http.Request) (idempotency.Answer, error) {
			result, err := tx.ExecContext(ctx, "INSERT INTO orders (item) VALUES (?)", r.FormValue("item"))
			if err != nil {
				return idempotency.Answer{}, err
			}
			id, err := result.LastInsertId()
			if err != nil {
				return idempotency.Answer{}, err
			}
			return idempotency.JSON(http.StatusCreated, map[string]int64{"id": id})
		}), nil
	}
	// docs:end
	_, err := handler(nil, nil)
	fmt.Println(err)
	// Output: mysql: db is nil
}

// A saga whose steps are transactions of MySQL or MariaDB.
func ExampleDB_Sagas() {
	// docs:begin saga
	run := func(ctx context.Context, db *sql.DB) error {
		own, err := mysql.Open(db, mysql.Config{})
		if err != nil {
			return err
		}
		order, err := saga.New(own.Sagas(), "order",
			saga.Step("charge", func(ctx context.Context, tx *sql.Tx, c *charge) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO charges (order_id, cents) VALUES (?, ?)", c.Order, c.Cents)
				return err
			}, func(ctx context.Context, tx *sql.Tx, c *charge) error {
				_, err := tx.ExecContext(ctx, "DELETE FROM charges WHERE order_id = ?", c.Order)
				return err
			}))
		if err != nil {
			return err
		}
		runner, err := saga.NewRunner(saga.Config{}, order)
		if err != nil {
			return err
		}
		return runner.Run(ctx) // until ctx ends
	}
	// docs:end
	fmt.Println(run(context.Background(), nil))
	// Output: mysql: db is nil
}
