package saga

import (
	"context"

	"github.com/jackc/pgx/v5"
)

type order struct{ ID, City string }

func placeOrder(ctx context.Context, tx pgx.Tx, o order) error {
	_, err := tx.Exec(ctx, "INSERT INTO orders (id, city) VALUES ($1, $2)", o.ID, o.City)
	return err
}

// note records that a step was done.
func note(what string) func(context.Context, pgx.Tx, *Trip) error {
	return func(ctx context.Context, tx pgx.Tx, trip *Trip) error {
		_, err := tx.Exec(ctx, "INSERT INTO done (trip, what) VALUES ($1, $2)", trip.ID, what)
		return err
	}
}

var (
	cancelHotel   = note("cancel hotel")
	reserveFlight = note("flight")
	cancelFlight  = note("cancel flight")
	reserveCar    = note("car")
	cancelCar     = note("cancel car")
	charge        = note("charge")
	refund        = note("refund")
)

func approve(ctx context.Context, tx pgx.Tx, trip *Trip, a Approval) error {
	return note("approved by "+a.By)(ctx, tx, trip)
}
