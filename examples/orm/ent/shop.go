// Package ent places orders with ent, whose transactions the adapter enttx opens. The folder ent
// contains generated code.
package ent

import (
	"context"
	"database/sql"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/enttx"
	"github.com/postrider/postrider/examples/orm/ent/ent"
)

//go:generate go run entgo.io/ent/cmd/ent generate --target ./ent ./ent/schema

//docs:begin open

// Open makes an ent client over a database whose dialect is dialect.Postgres or dialect.MySQL.
func Open(dialect string, db *sql.DB) *ent.Client {
	return ent.NewClient(ent.Driver(enttx.Driver(entsql.OpenDB(dialect, db))))
}

//docs:end

//docs:begin shop

// Shop places orders.
type Shop struct {
	Client *ent.Client
	Outbox postrider.Outbox[*sql.Tx]
}

// Place writes an order and its message, both or neither.
func (s *Shop) Place(ctx context.Context, item string) error {
	tx, sqlTx, err := enttx.Begin(ctx, s.Client.Tx)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, after an error the first error counts

	order, err := tx.Order.Create().SetID(postrider.NewID().String()).SetItem(item).Save(ctx)
	if err != nil {
		return err
	}
	if err := s.Outbox.Enqueue(ctx, sqlTx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, order)); err != nil {
		return err
	}
	return tx.Commit()
}

//docs:end
