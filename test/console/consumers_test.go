package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	_ "github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// consume runs two services with an inbox. One of them cannot handle all messages.
func (s *shop) consume(ctx context.Context, run func(func() error)) {
	s.t.Helper()
	driver, err := broker.Lookup("nats")
	if err != nil {
		s.t.Fatal(err)
	}
	for name, subject := range map[string]string{"billing": "payments", "warehouse": "orders"} {
		in, err := inbox.New(s.db.Inbox(), name, inbox.Config{Retry: retry.Policy{Attempts: 1}, IgnoreUnknown: true, Logger: quiet()})
		if err != nil {
			s.t.Fatal(err)
		}
		fine := func(context.Context, pgx.Tx, postrider.Message) error { return nil }
		in.Handle("order.placed", fine)
		in.Handle("payment.captured", func(_ context.Context, _ pgx.Tx, m postrider.Message) error {
			if strings.HasSuffix(m.AggregateID, "0017") {
				return errors.New("sổ cái tháng 10 đã khóa: ledger of 2026-10 is closed")
			}
			return nil
		})
		in.Handle("payment.refused", func(_ context.Context, _ pgx.Tx, m postrider.Message) error {
			var why struct{ Reason string }
			if err := json.Unmarshal(m.Payload, &why); err != nil {
				return err
			}
			return postrider.Permanent(errors.New(why.Reason))
		})
		consumer, err := driver.Subscribe(&broker.Settings{
			URL: s.nats, Values: map[string]string{"name": s.stream + "." + subject, "group": name}, Logger: quiet(),
		})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = consumer.Close() })
		run(func() error { return in.Run(ctx, consumer) })
	}
}

// seedKeys creates idempotency keys that are completed, in progress, and expired.
func (s *shop) seedKeys(ctx context.Context) {
	s.t.Helper()
	store := s.db.IdempotencyKeys()
	for n := range 24 {
		c := customers[n%len(customers)]
		claim := idempotency.Claim{
			ID:    idempotency.ID{Tenant: c.tenant, Principal: c.id, Route: "POST /orders", Key: fmt.Sprintf("pay-%04d-%s", n, c.city)},
			Token: fmt.Sprint("token-", n), Lease: time.Hour, Retention: 24 * time.Hour,
		}
		if n%8 == 7 {
			claim.Lease = time.Millisecond
		}
		if _, err := store.Claim(ctx, claim); err != nil {
			s.t.Fatal(err)
		}
		if n%8 < 6 {
			answer, err := idempotency.JSON(201, map[string]any{"order": n})
			if err == nil {
				err = store.Save(ctx, claim, answer)
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}
