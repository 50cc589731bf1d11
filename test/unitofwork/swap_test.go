package unitofwork_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	broker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/unitofwork"
)

// shop is an application. It knows only the type of its transactions, neither a store nor a relay.
type shop struct {
	db     postrider.Transactor[pgx.Tx]
	outbox postrider.Outbox[pgx.Tx]
	insert string
}

var errOutOfStock = errors.New("out of stock")

// buy places an order, with one message enqueued manually and one automatically. More than 10 is
// out of stock.
func (s *shop) buy(ctx context.Context, id string, amount int) error {
	work := unitofwork.New(s.db, s.outbox)
	return work.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		o := &order{id: id}
		o.place()
		if err := unitofwork.Track(ctx, o); err != nil {
			return err
		}
		if err := s.outbox.Enqueue(ctx, tx, postrider.UniqueEvent("stock.reserved", postrider.Aggregate{Type: "order", ID: id}, amount)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.insert, id); err != nil {
			return err
		}
		if amount > 10 {
			return errOutOfStock
		}
		return nil
	})
}

// TestSwap runs the same application with either outbox, with the same result: only the wiring
// differs.
func TestSwap(t *testing.T) {
	for name, wire := range map[string]func(*scene) (postrider.Outbox[pgx.Tx], feeds.Store){
		"memory": func(*scene) (postrider.Outbox[pgx.Tx], feeds.Store) {
			store := memory.Open(memory.Config{})
			return memory.Outbox[pgx.Tx](store), store
		},
		"postgres": func(s *scene) (postrider.Outbox[pgx.Tx], feeds.Store) { return s.db.Outbox(), s.db.Feeds() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
			outbox, store := wire(s)
			trade(t, s, &shop{s.db.Transactor(), outbox, s.in("INSERT INTO @.orders VALUES ($1)")}, store)
		})
	}
}

func trade(t *testing.T, s *scene, app *shop, store feeds.Store) {
	destination := broker.New()
	dispatcher, err := relay.New(store, destination, relay.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	done := make(chan error)
	go func() { done <- dispatcher.Run(ctx) }()

	var want []string
	for i := range 30 {
		id := strconv.Itoa(i)
		err := app.buy(ctx, id, i%15)
		if refused := i%15 > 10; refused != errors.Is(err, errOutOfStock) || !refused && err != nil {
			t.Fatalf("order %s: %v", id, err)
		}
		if err == nil {
			want = append(want, id)
		}
	}
	// A rejected fact can be stated again; an accepted one is stated once.
	if err := app.buy(ctx, "11", 1); err != nil {
		t.Error(err)
	}
	want = append(want, "11")
	if err := app.db.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		repeats, err := app.outbox.Offer(ctx, tx, postrider.UniqueEvent("stock.reserved", postrider.Aggregate{Type: "order", ID: "11"}, nil))
		if len(repeats) != 1 {
			t.Errorf("a fact that was accepted was accepted again")
		}
		return err
	}); err != nil {
		t.Error(err)
	}

	arrived, err := destination.Wait(ctx, 2*len(want))
	if err != nil {
		t.Errorf("%d messages have arrived, want %d: %v", len(arrived), 2*len(want), err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	byOrder := make(map[string][]string)
	for _, m := range destination.Messages() {
		byOrder[m.AggregateID] = append(byOrder[m.AggregateID], m.Type)
	}
	if rows := s.rows(); len(rows) != len(want) || len(byOrder) != len(want) {
		t.Errorf("%d orders and messages of %d, want %d", len(rows), len(byOrder), len(want))
	}
	for _, id := range want {
		if got := byOrder[id]; !slices.Equal(got, []string{"stock.reserved", "order.placed"}) {
			t.Errorf("order %s: %q have arrived", id, got)
		}
	}
}
