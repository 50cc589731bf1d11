package classic_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/classic"
	"github.com/postrider/postrider/store/classic/classictest"
	"github.com/postrider/postrider/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	classictest.Each(t, func(t *testing.T, open func(testing.TB) classictest.Server) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			s := open(t)
			cfg := classic.Config{Dialect: s.Dialect}
			classictest.Migrate(t, s, cfg)
			return storetest.Harness{
				Store:   newStore(t, s, cfg),
				Shards:  8,
				OneFeed: true,
				Begin:   func(t *testing.T) storetest.Tx { return begin(t, s, cfg) },
				Desk:    newDesk(t, s, cfg),
			}
		})
	})
}

func newStore(t testing.TB, s classictest.Server, cfg classic.Config) *classic.Store {
	t.Helper()
	store, err := classic.New(s.DB, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newDesk(t testing.TB, s classictest.Server, cfg classic.Config) *classic.Desk {
	t.Helper()
	d, err := classic.NewDesk(s.DB, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tx joins an outbox and a transaction for the suite.
type tx struct {
	*sql.Tx
	outbox *classic.Outbox
}

func begin(t testing.TB, s classictest.Server, cfg classic.Config) *tx {
	t.Helper()
	outbox, err := classic.NewOutbox(cfg)
	if err != nil {
		t.Fatal(err)
	}
	began, err := s.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &tx{began, outbox}
}

func (x *tx) Enqueue(ctx context.Context, msgs ...postrider.Message) error {
	return x.outbox.Enqueue(ctx, x.Tx, msgs...)
}

func (x *tx) Offer(ctx context.Context, msgs ...postrider.Message) ([]int, error) {
	return x.outbox.Offer(ctx, x.Tx, msgs...)
}
