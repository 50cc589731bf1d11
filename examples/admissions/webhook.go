package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres"
)

const (
	paymentSucceeded = "payment.succeeded"
	paymentDeclined  = "payment.declined"
)

// paymentNews is the payload of the payment provider's webhooks.
type paymentNews struct {
	Type        string `json:"type"`
	Payment     string `json:"payment"`
	Application string `json:"application"`
}

// webhookReceiver receives webhooks of the payment provider. A webhook is a message like any other:
// the receiver verifies its signature, and an inbox handles it once and retries it if that fails.
type webhookReceiver struct {
	http.Handler
	inbox *inbox.Inbox[pgx.Tx]
}

func newWebhookReceiver(db *postgres.DB, set settings) (*webhookReceiver, error) {
	admission, err := newAdmission(db, set)
	if err != nil {
		return nil, err
	}
	in, err := inbox.New(db.Inbox(), "payment_webhook", inbox.Config{})
	if err != nil {
		return nil, err
	}
	// "payments" is the {name} of the path: a request that is not a CloudEvent has no type of its
	// own.
	inbox.On(in, "payments", func(ctx context.Context, tx pgx.Tx, news paymentNews) error {
		if news.Type != paymentSucceeded && news.Type != paymentDeclined {
			return postrider.Permanent(fmt.Errorf("nobody knows what %q means", news.Type))
		}
		receipt, err := admission.saga.Signal(ctx, tx, news.Application, "paid", news)
		if receipt == saga.Late {
			slog.Warn("payment came too late", "application", news.Application, "payment", news.Payment, "type", news.Type)
		}
		return err
	})
	receiver, err := webhook.NewReceiver(webhook.Config{Secrets: []string{set.paymentSecret}}, in.Receive)
	return &webhookReceiver{receiver, in}, err
}

// Run retries failed webhooks until ctx ends.
func (w *webhookReceiver) Run(ctx context.Context) error { return w.inbox.Run(ctx) }
