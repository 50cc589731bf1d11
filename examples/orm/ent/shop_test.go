package ent

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/postrider/postrider/adapter/enttx"
	"github.com/postrider/postrider/examples/orm/ent/ent"
	"github.com/postrider/postrider/examples/orm/internal/ormtest"
)

func TestPlace(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		shop := &Shop{Client: Open(db.Dialect, db.DB), Outbox: ormtest.Refusing(db.Outbox)}
		ormtest.Exercise(t, db, shop.Place)
	})
}

// TestBegin checks that ent's other features still work: hooks of the client and of the
// transaction, debugging, options.
func TestBegin(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		client := Open(db.Dialect, db.DB).Debug()
		created, committed := 0, 0
		client.Use(func(next ent.Mutator) ent.Mutator {
			return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
				created++
				return next.Mutate(ctx, m)
			})
		})
		tx, sqlTx, err := enttx.Begin(t.Context(), func(ctx context.Context) (*ent.Tx, error) {
			return client.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		})
		if err != nil {
			t.Fatal(err)
		}
		tx.OnCommit(func(next ent.Committer) ent.Committer {
			return ent.CommitFunc(func(ctx context.Context, tx *ent.Tx) error {
				committed++
				return next.Commit(ctx, tx)
			})
		})
		tx.Order.Create().SetID("1").SetItem("saddle").ExecX(t.Context())
		var seen int
		if err := sqlTx.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&seen); err != nil || seen != 1 {
			t.Errorf("%d orders in the *sql.Tx of a transaction with one, %v", seen, err)
		}
		if err := tx.Commit(); err != nil || created != 1 || committed != 1 {
			t.Errorf("%v; hooks were run %d and %d times", err, created, committed)
		}
		if err := sqlTx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("after the commit: %v", err)
		}
	})
}

func TestWithoutDriver(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		client := ent.NewClient(ent.Driver(entsql.OpenDB(db.Dialect, db.DB)))
		tx, sqlTx, err := enttx.Begin(t.Context(), client.Tx)
		if tx != nil || sqlTx != nil || !errors.Is(err, enttx.ErrNoTransaction) {
			t.Errorf("%v, %v, %v", tx, sqlTx, err)
		}
		if open := db.DB.Stats().InUse; open != 0 {
			t.Errorf("%d transactions were left open", open)
		}
	})
}
