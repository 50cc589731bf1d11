package classic_test

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
	"github.com/postrider/postrider/store/classic"
)

type charge struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// A consumer that charges for orders, and says so: the charge, the message and the record of what was received are one commit.
func ExampleNewInbox() {
	// docs:begin inbox
	consume := func(ctx context.Context, db *sql.DB, orders postrider.Consumer) error {
		cfg := classic.Config{Dialect: classic.MySQL}
		store, err := classic.NewInbox(db, cfg)
		if err != nil {
			return err
		}
		outbox, err := classic.NewOutbox(cfg)
		if err != nil {
			return err
		}
		billing, err := inbox.New(store, "billing", inbox.Config{})
		if err != nil {
			return err
		}
		inbox.On(billing, "order.placed", func(ctx context.Context, tx *sql.Tx, c charge) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO charges (order_id, cents) VALUES (?, ?)", c.Order, c.Cents)
			if err != nil {
				return err
			}
			return outbox.Enqueue(ctx, tx, postrider.Event("order.charged", "order", c.Order, c))
		})
		return billing.Run(ctx, orders) // until ctx ends
	}
	// docs:end
	fmt.Println(consume(context.Background(), nil, nil))
	// Output: classic: db is nil
}

// Operators decide about what consumers have set aside.
func ExampleNewInboxLetters() {
	_, err := classic.NewInboxLetters(nil, classic.Config{Dialect: classic.MySQL})
	fmt.Println(err)
	// Output: classic: db is nil
}

// The wiring of an application. Its code holds the transactor as the interface.
func ExampleNewTransactor() {
	// docs:begin transactor
	place := func(ctx context.Context, db *sql.DB, order string) error {
		transactor, err := classic.NewTransactor(db, classic.TransactorConfig{Config: classic.Config{Dialect: classic.MySQL}})
		if err != nil {
			return err
		}
		err = transactor.Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
	// Output: classic: db is nil
}

// An order and the answer to whoever placed it: one commit, however often the request is sent.
func ExampleNewIdempotency() {
	// docs:begin idempotency
	handler := func(db *sql.DB, userOf func(*http.Request) string) (http.Handler, error) {
		cfg := classic.Config{Dialect: classic.MySQL}
		store, err := classic.NewIdempotency(db, cfg)
		if err != nil {
			return nil, err
		}
		transactor, err := classic.NewTransactor(db, classic.TransactorConfig{Config: cfg})
		if err != nil {
			return nil, err
		}
		keys, err := idempotency.New(store, idempotency.Config{
			Scope: func(r *http.Request) (idempotency.Scope, error) {
				return idempotency.Scope{Principal: userOf(r)}, nil
			},
		})
		if err != nil {
			return nil, err
		}
		return keys.Handle(transactor, func(ctx context.Context, tx *sql.Tx, r *http.Request) (idempotency.Answer, error) {
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
	// Output: classic: db is nil
}

// A saga whose steps are transactions of MySQL or MariaDB.
func ExampleNewSagas() {
	// docs:begin saga
	run := func(ctx context.Context, db *sql.DB) error {
		store, err := classic.NewSagas(db, classic.Config{Dialect: classic.MySQL})
		if err != nil {
			return err
		}
		order, err := saga.New(store, "order",
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
	// Output: classic: db is nil
}
