package memory_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/transactor/transactortest"
)

func TestTransactor(t *testing.T) {
	s := memory.Open(memory.Config{})
	transactortest.Run(t, transactortest.Harness[*memory.Tx]{Transactor: s, Outbox: s, Store: s})
}

// other is a database that the store does not know.
type other struct {
	postrider.Transactor[*memory.Tx]
}

func (o other) Do(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	return o.Transactor.Do(ctx, func(ctx context.Context, _ *memory.Tx) error { return f(ctx, nil) })
}

// The outbox for transactions of another database holds messages back until the commit.
func TestOutboxOfAnotherDatabase(t *testing.T) {
	s := memory.Open(memory.Config{})
	transactortest.Run(t, transactortest.Harness[*sql.Tx]{
		Transactor: other{memory.Open(memory.Config{})}, Outbox: memory.Outbox[*sql.Tx](s), Store: s,
	})
}

// A dedup key that was claimed in a transaction is free after its rollback.
func TestRollbackFreesDedupKeys(t *testing.T) {
	ctx := t.Context()
	s := memory.Open(memory.Config{})
	outbox, db := memory.Outbox[*sql.Tx](s), other{memory.Open(memory.Config{})}
	fact := postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	for i, refused := range []error{errors.New("refused"), nil, nil} {
		err := db.Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
			repeats, err := outbox.Offer(ctx, tx, fact)
			if want := i / 2; err != nil || len(repeats) != want {
				t.Errorf("offer %d: %d repeats, %v; want %d", i, len(repeats), err, want)
			}
			return refused
		})
		if !errors.Is(err, refused) {
			t.Error(err)
		}
	}
}
