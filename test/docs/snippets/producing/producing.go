// Package producing contains the snippets of docs/producing/go.md.
package producing

import (
	"context"
	"database/sql"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

// Shop is an application with both kinds of outboxes.
type Shop struct {
	outbox    postrider.Outbox[pgx.Tx]
	sqlOutbox postrider.Outbox[*sql.Tx]
}

// New creates the outboxes. They need no connection of their own.
func New(pool *pgxpool.Pool, sqlPool *sql.DB) (*Shop, error) {
	//docs:begin outbox
	db, err := postgres.Open(pool, postgres.Config{}) // once, for the whole program
	//docs:skip
	if err != nil {
		return nil, err
	}
	//docs:resume
	outbox := db.Outbox()
	//docs:end
	sqlDB, err := postgres.OpenSQL(sqlPool, postgres.Config{LockKeys: true})
	if err != nil {
		return nil, err
	}
	return &Shop{outbox, sqlDB.Outbox()}, nil
}

// Place writes an order and its message with pgx.
func (s *Shop) Place(ctx context.Context, pool *pgxpool.Pool, item string, cents int) error {
	outbox := s.outbox
	//docs:begin pgx
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var id string
		err := tx.QueryRow(ctx, "INSERT INTO orders (item, cents) VALUES ($1, $2) RETURNING id::text", item, cents).Scan(&id)
		if err != nil {
			return err
		}
		payload := map[string]any{"id": id, "item": item, "cents": cents}
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: id}, payload))
	})
	//docs:end
}

// PlaceAll writes many messages in one round trip.
func (s *Shop) PlaceAll(ctx context.Context, tx pgx.Tx, ids []string) error {
	outbox := s.outbox
	//docs:begin many
	msgs := make([]postrider.Message, len(ids))
	for i, id := range ids {
		msgs[i] = postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: id}, map[string]string{"id": id})
	}
	return outbox.Enqueue(ctx, tx, msgs...)
	//docs:end
}

// Pay publishes a payment once, however often the bank reports it.
func (s *Shop) Pay(ctx context.Context, tx pgx.Tx, order, payment string) error {
	outbox := s.outbox
	//docs:begin offer
	repeats, err := outbox.Offer(ctx, tx, postrider.UniqueEvent("order.paid", postrider.Aggregate{Type: "order", ID: order}, map[string]string{"payment": payment},
		func(m *postrider.Message) { m.DedupKey = "payment:" + payment }))
	if err == nil && len(repeats) > 0 {
		slog.Info("this payment was known", "payment", payment)
	}
	//docs:end
	return err
}

// Ship sets more than the usual fields.
func (s *Shop) Ship(ctx context.Context, tx pgx.Tx, order, tenant, request string) error {
	outbox := s.outbox
	//docs:begin options
	m := postrider.Event("order.shipped", postrider.Aggregate{Type: "order", ID: order}, map[string]string{"carrier": "pony"}, func(m *postrider.Message) {
		m.TenantID = tenant
		m.CorrelationID = request
		m.Headers = map[string]string{"source": "warehouse"}
	})
	//docs:end
	return outbox.Enqueue(ctx, tx, m)
}

// Remind fills in a message field by field.
func (s *Shop) Remind(ctx context.Context, tx pgx.Tx, address string, pdf []byte) error {
	outbox := s.outbox
	//docs:begin message
	return outbox.Enqueue(ctx, tx, postrider.Message{
		Type:        "send_invoice",
		Topic:       "mails",
		Key:         address,
		Payload:     pdf,
		ContentType: "application/pdf",
	})
	//docs:end
}
