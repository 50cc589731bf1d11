// Package metrics contains the snippets of docs/metrics.md.
package metrics

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// Watched has the observed parts of an application.
type Watched struct {
	Outbox  postrider.Outbox[pgx.Tx]
	Carrier *relay.Relay
	Billing *inbox.Inbox[pgx.Tx]
	Search  postrider.Consumer
}

// Observe registers all metrics.
func Observe(ctx context.Context, db *postgres.DB, publisher postrider.Publisher, consumer *redis.Consumer,
	reconciler *reconcile.Reconciler[pgx.Tx],
) (w Watched, err error) {
	//docs:begin observe
	metrics, err1 := prometheus.New(prometheus.Config{}) // adapter/telemetry/prometheus; a registry of its own unless one is given

	outbox := postrider.ObserveOutbox(db.Outbox(), metrics) // db is from postgres.Open; producers enqueue through this one

	watched := broker.ObservePublisher("orders", publisher, metrics)
	carrier, err2 := relay.New(db.Feeds(), watched, relay.Config{Feed: "orders"})
	metrics.AddRelay("main", "orders", carrier.Stats) // each Add returns a function that removes it

	billing, err3 := inbox.New(db.Inbox(), "billing", inbox.Config{Observer: metrics})
	metrics.AddInbox("billing", billing.Stats)

	search := middleware.Use(consumer, postrider.Observe("search", metrics)) // a consumer without an inbox
	metrics.AddConsumer("search", consumer.Stats)

	metrics.AddReconciler(reconciler.Stats)
	metrics.AddDatabase("main", db.Admin())

	go metrics.Run(ctx)
	http.Handle("/metrics", metrics.Handler())
	//docs:end
	return Watched{outbox, carrier, billing, search}, errors.Join(err1, err2, err3)
}
