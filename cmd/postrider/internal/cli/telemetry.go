package cli

import (
	"context"
	"net/http"
	"sync"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/broker"
)

// telemetry holds the observers of the messages of a process.
type telemetry struct {
	metrics   *prometheus.Metrics // nil without an endpoint for them
	observers []postrider.Observer
}

// newTelemetry creates the metrics if the process has an endpoint for them.
func newTelemetry(s *service) (*telemetry, error) {
	t := &telemetry{}
	if s.health.Listen == "" {
		return t, nil
	}
	var err error
	if t.metrics, err = prometheus.New(prometheus.Config{Logger: s.log, Runtime: true}); err != nil {
		return nil, err
	}
	t.observers = append(t.observers, t.metrics)
	return t, nil
}

// observe wraps the publisher of a feed with the observers.
func (t *telemetry) observe(feed string, to postrider.Publisher) postrider.Publisher {
	if len(t.observers) == 0 {
		return to
	}
	return broker.ObservePublisher(feed, to, postrider.Observers(t.observers...))
}

// attach adds the relays, databases and reconcilers of a process to the metrics. It queries the
// gauges of a database over the connections of one of its feeds.
func (t *telemetry) attach(s *service) error {
	if t.metrics == nil {
		return nil
	}
	known := make(map[string]bool)
	for i := range s.feeds {
		feed := &s.feeds[i]
		t.metrics.AddRelay(feed.database, feed.cfg.Feed, feed.relay.Stats)
		if known[feed.database] {
			continue
		}
		known[feed.database] = true
		gauges, err := feed.admin()
		if err != nil {
			return usageError{err}
		}
		t.metrics.AddDatabase(feed.database, gauges)
	}
	if s.reconciler != nil {
		for _, reconciler := range s.reconciler.byName {
			t.metrics.AddReconciler(reconciler.Stats)
		}
	}
	return nil
}

// handler returns the handler of /metrics, or nil without metrics.
func (t *telemetry) handler() http.Handler {
	if t.metrics == nil {
		return nil
	}
	return t.metrics.Handler()
}

// run refreshes the gauges until ctx ends.
func (t *telemetry) run(ctx context.Context, helpers *sync.WaitGroup) {
	if t.metrics != nil {
		helpers.Go(func() { _ = t.metrics.Run(ctx) }) // never fails
	}
}
