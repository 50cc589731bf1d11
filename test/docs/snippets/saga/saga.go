// Package saga contains the snippets of docs/saga.md.
package saga

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres"
)

// Trip is the data of a booking's steps.
type Trip struct {
	ID          string
	City        string
	Reservation int64
}

// Approval is a person's answer.
type Approval struct {
	Granted bool
	By      string
}

var outbox postrider.Outbox[pgx.Tx]

// Book defines the saga.
func Book(pool *pgxpool.Pool) (*saga.Saga[pgx.Tx, Trip], error) {
	//docs:begin saga
	db, err := postgres.Open(pool, postgres.Config{}) // or OpenSQL for database/sql
	//docs:skip
	if err != nil {
		return nil, err
	}
	//docs:resume
	booking, err := saga.New(db.Sagas(), "book-trip",
		saga.Step("hotel", reserveHotel, cancelHotel),
		saga.Parallel(
			saga.Step("flight", reserveFlight, cancelFlight).Timeout(10*time.Second),
			saga.Step("car", reserveCar, cancelCar)),
		saga.Wait("approval", approve, nil).Within(24*time.Hour),
		saga.Step("payment", charge, refund))
	//docs:skip
	if err != nil {
		return nil, err
	}
	//docs:resume
	booking.Within(72 * time.Hour) // all of it
	//docs:end
	return booking, nil
}

//docs:begin saga

// An action or a compensation. Messages go through the outbox, in the same transaction.
func reserveHotel(ctx context.Context, tx pgx.Tx, trip *Trip) error {
	err := tx.QueryRow(ctx, "INSERT INTO reservations (city) VALUES ($1) RETURNING id", trip.City).Scan(&trip.Reservation)
	if err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, postrider.Event("hotel.reserved", postrider.Aggregate{Type: "trip", ID: trip.ID}, trip))
}

//docs:end

// Order starts a booking.
func Order(ctx context.Context, transactor postrider.Transactor[pgx.Tx], booking *saga.Saga[pgx.Tx, Trip], order order) (err error) {
	//docs:begin saga
	// Start: in the transaction that you already have.
	err = transactor.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := placeOrder(ctx, tx, order); err != nil {
			return err
		}
		return booking.Start(ctx, tx, order.ID, Trip{ID: order.ID, City: order.City}) // saga.ErrExists if it was started before
	})
	//docs:end
	return err
}

// Run runs the steps of bookings.
func Run(ctx context.Context, booking *saga.Saga[pgx.Tx, Trip]) error {
	//docs:begin saga
	// Run: in as many processes as you like.
	runner, err := saga.NewRunner(saga.Config{}, booking)
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	err = runner.Run(ctx)
	//docs:end
	return err
}

// Wait is a step that continues when an answer has arrived.
func Wait() saga.Steps[pgx.Tx, Trip] {
	//docs:begin wait
	approval := saga.Wait("approval", func(ctx context.Context, tx pgx.Tx, trip *Trip, a Approval) error {
		if !a.Granted {
			return postrider.Permanent(errors.New("refused by " + a.By)) // compensate
		}
		return nil
	}, nil).Within(24 * time.Hour)
	//docs:end
	return approval
}

// Approve sends the answer.
func Approve(ctx context.Context, tx pgx.Tx, booking *saga.Saga[pgx.Tx, Trip], trip Trip) (saga.Receipt, error) {
	//docs:begin wait
	// In any transaction, such as that of an inbox handler.
	receipt, err := booking.Signal(ctx, tx, trip.ID, "approval", Approval{Granted: true, By: "ann"})
	//docs:end
	return receipt, err
}
