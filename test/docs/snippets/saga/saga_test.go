package saga

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/test/docs/scratch"
)

// TestBooking books a trip as on the page: ordered, reserved, approved and paid.
func TestBooking(t *testing.T) {
	pool, db := scratch.Open(t, "CREATE TABLE orders (id text, city text)", "CREATE TABLE done (trip text, what text)",
		"CREATE TABLE reservations (id bigserial, city text)")
	transactor := db.Transactor()
	outbox = db.Outbox()
	booking, err := Book(pool)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, booking) }()

	if err := Order(ctx, transactor, booking, order{"trip-7", "Lisbon"}); err != nil {
		t.Fatal(err)
	}
	err = transactor.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := Approve(ctx, tx, booking, Trip{ID: "trip-7"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const paid = "SELECT count(*) FROM done WHERE what IN ('flight', 'car', 'approved by ann', 'charge')"
	scratch.Await(t, pool, paid, 4)
	if n := scratch.Count(t, pool, "SELECT count(*) FROM postrider.messages WHERE type = 'hotel.reserved'"); n != 1 {
		t.Errorf("%d messages", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWait checks that the page's waiting step is valid.
func TestWait(t *testing.T) {
	_, db := scratch.Open(t)
	if _, err := saga.New(db.Sagas(), "approve", Wait()); err != nil {
		t.Error(err)
	}
}
