// Package unitofwork contains the snippets of docs/unit-of-work.md.
package unitofwork

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/unitofwork"
)

// Place writes a row and a message in one transaction.
func Place(ctx context.Context, transactor postrider.Transactor[pgx.Tx], outbox postrider.Outbox[pgx.Tx], id string, payload any) error {
	//docs:begin transactor
	err := transactor.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		//docs:skip business rows, by tx
		if _, err := tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", id); err != nil {
			return err
		}
		//docs:resume
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: id}, payload))
	})
	//docs:end
	return err
}

//docs:begin unit

// Order is an aggregate. It records its own events.
type Order struct {
	unitofwork.Events
	ID string
}

// Place records an event.
func (o *Order) Place() {
	o.Record(postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: o.ID}, nil))
}

//docs:end

type repository struct{}

// Get reads an order, and tracks it so that its events are written.
func (repository) Get(ctx context.Context, tx pgx.Tx, id string) (*Order, error) {
	order := &Order{}
	if err := tx.QueryRow(ctx, "SELECT id FROM orders WHERE id = $1", id).Scan(&order.ID); err != nil {
		return nil, err
	}
	return order, unitofwork.Track(ctx, order)
}

// Save writes an order.
func (repository) Save(ctx context.Context, tx pgx.Tx, order *Order) error {
	_, err := tx.Exec(ctx, "UPDATE orders SET placed = true WHERE id = $1", order.ID)
	return err
}

// PlaceByUnit places an order that records its own events.
func PlaceByUnit(ctx context.Context, transactor postrider.Transactor[pgx.Tx], outbox postrider.Outbox[pgx.Tx], id string) error {
	var orders repository
	//docs:begin unit
	work := unitofwork.New(transactor, outbox) // once, where things are wired
	err := work.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		order, err := orders.Get(ctx, tx, id) // calls unitofwork.Track(ctx, order)
		//docs:skip
		if err != nil {
			return err
		}
		//docs:resume
		order.Place()
		return orders.Save(ctx, tx, order)
	})
	//docs:end
	return err
}
