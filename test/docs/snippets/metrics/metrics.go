// Package metrics has what docs/metrics.md shows.
package metrics

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/telemetry/prometheus"
)

// Observe lets a registry see all that there is to see.
func Observe(ctx context.Context, outbox postrider.Outbox[pgx.Tx], publisher postrider.Publisher, consumer postrider.Consumer,
	carrier *relay.Relay, in *inbox.Inbox[pgx.Tx], patrol *reconcile.Patrol[pgx.Tx], gauges desk.Gauges,
) (postrider.Outbox[pgx.Tx], postrider.Publisher, postrider.Consumer, error) {
	//docs:begin observe
	metrics, err := prometheus.New(prometheus.Config{}) // telemetry/prometheus; a registry of its own unless one is given
	//docs:skip
	if err != nil {
		return nil, nil, nil, err
	}
	//docs:resume

	outbox = postrider.ObserveOutbox(outbox, metrics)                         // producers
	publisher = postrider.ObservePublisher("orders", publisher, metrics)      // relays: before relay.New
	consumer = postrider.Use(consumer, postrider.Observe("billing", metrics)) // consumers

	metrics.AddRelay("main", "orders", carrier.Stats) // each returns a function that removes it
	metrics.AddInbox("billing", in.Stats)
	metrics.AddPatrol(patrol.Stats)
	metrics.AddDatabase("main", gauges)

	go metrics.Run(ctx)
	http.Handle("/metrics", metrics.Handler())
	//docs:end
	return outbox, publisher, consumer, nil
}
