// Package prometheus counts and times messages, relays, inboxes and reconcilers for Prometheus, and tells how the feeds and
// databases stand.
//
//	metrics, err := prometheus.New(prometheus.Config{})
//	outbox = postrider.ObserveOutbox(outbox, metrics)
//	carrier, err := relay.New(store, broker.ObservePublisher("orders", publisher, metrics), relay.Config{Feed: "orders"})
//	metrics.AddRelay("main", "orders", carrier.Stats)
//	metrics.AddDatabase("main", gauges)
//	go metrics.Run(ctx)
//	http.Handle("/metrics", metrics.Handler())
//
// A scrape reads memory only: [Metrics.Run] asks the databases, however often one scrapes. What it could not learn for a
// while is left out of the scrape, so that an old figure never looks like a new one.
//
// All names are in [Descriptions] and in docs/metrics.md. The number of series is bounded by the configuration: feeds,
// consumers, jobs and shards; of tenants that are read apart, 20 in each database are shown by name.
package prometheus
