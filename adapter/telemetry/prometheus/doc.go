// Package prometheus exports metrics of messages, relays, inboxes, reconcilers, feeds and databases
// to Prometheus.
//
//	metrics, err := prometheus.New(prometheus.Config{})
//	outbox = postrider.ObserveOutbox(outbox, metrics)
//	carrier, err := relay.New(store, broker.ObservePublisher("orders", publisher, metrics), relay.Config{Feed: "orders"})
//	metrics.AddRelay("main", "orders", carrier.Stats)
//	metrics.AddDatabase("main", gauges)
//	go metrics.Run(ctx)
//	http.Handle("/metrics", metrics.Handler())
//
// A scrape reads memory only: [Metrics.Run] queries the databases, independently of scrapes.
// Figures that are outdated because a database does not answer are left out of the scrape.
//
// [Descriptions] and docs/metrics.md list all names. The configuration limits the number of series:
// feeds, consumers, jobs and shards. Of tenants that have their own slice of a shard, 20 per
// database are shown by name.
package prometheus
