package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker"
	memorybroker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/memory"
)

// show prints the series of some names in a scrape.
func show(m *prometheus.Metrics, names ...string) {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		for _, name := range names {
			if strings.HasPrefix(line, name) {
				fmt.Print(line)
			}
		}
	}
}

// An application with its own registry and its own latency buckets.
func ExampleNew() {
	registry := client.NewRegistry()
	metrics, err := prometheus.New(prometheus.Config{
		Registerer:     registry,
		LatencyBuckets: []float64{.1, 1, 5, 60},
	})
	if err != nil {
		log.Fatal(err)
	}
	show(metrics, "postrider_enqueued")
	// Output:
	// postrider_enqueued_messages_total{result="accepted"} 0
	// postrider_enqueued_messages_total{result="failed"} 0
	// postrider_enqueued_messages_total{result="repeated"} 0
}

// A relay is observed twice: each message it publishes, and the relay's own counters at each
// scrape.
func ExampleMetrics_AddRelay() {
	metrics, err := prometheus.New(prometheus.Config{})
	if err != nil {
		log.Fatal(err)
	}
	store, queues := memory.Open(memory.Config{}), memorybroker.New()
	carrier, err := relay.New(store, broker.ObservePublisher("orders", queues, metrics), relay.Config{Feed: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	remove := metrics.AddRelay("main", "orders", carrier.Stats)
	show(metrics, "postrider_published_messages", "postrider_relay_paused")
	remove()
	show(metrics, "postrider_published_messages") // nothing
	// Output:
	// postrider_published_messages_total{database="main",feed="orders"} 0
	// postrider_relay_paused{database="main",feed="orders"} 0
}

func ExampleMetrics_AddInbox() {
	metrics, err := prometheus.New(prometheus.Config{})
	if err != nil {
		log.Fatal(err)
	}
	stats := func() inbox.Stats { return inbox.Stats{Handled: 40, Repeated: 2} } // the Stats of an inbox
	defer metrics.AddInbox("billing", stats)()
	show(metrics, `postrider_inbox_messages_total{consumer="billing",verdict="repeated"}`)
	// Output: postrider_inbox_messages_total{consumer="billing",verdict="repeated"} 2
}

func ExampleMetrics_AddReconciler() {
	metrics, err := prometheus.New(prometheus.Config{})
	if err != nil {
		log.Fatal(err)
	}
	stats := func() []reconcile.Stats { // the Stats of a reconciler
		return []reconcile.Stats{{Job: "enrollments", Runs: 3, Counts: reconcile.Counts{Found: 2, Fixed: 2}}}
	}
	defer metrics.AddReconciler(stats)()
	show(metrics, "postrider_reconciler_fixed_total")
	// Output: postrider_reconciler_fixed_total{reconciler="enrollments"} 2
}

// standing is a store with one feed that is late.
type standing struct{}

func (standing) Gauges(context.Context) (*admin.Standing, error) {
	now := time.Now()
	return &admin.Standing{At: now, Feeds: []admin.FeedStanding{
		{Name: "orders", Pending: admin.Estimate{N: 1200, Exact: true}, Oldest: now.Add(-90 * time.Second)},
	}}, nil
}

func (standing) Health(context.Context) (*admin.Health, error) { return &admin.Health{}, nil }

// The admin API of a store reports the state of its feeds.
func ExampleMetrics_AddDatabase() {
	metrics, err := prometheus.New(prometheus.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer metrics.AddDatabase("main", standing{})()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- metrics.Run(ctx) }()
	waitFor(metrics, "postrider_database_up")
	show(metrics, "postrider_pending_messages", "postrider_oldest_pending_age_seconds")
	stop()
	fmt.Println(<-done)
	// Output:
	// postrider_oldest_pending_age_seconds{database="main",feed="orders"} 90
	// postrider_pending_messages{database="main",feed="orders"} 1200
	// <nil>
}

// waitFor waits until the databases have been queried once.
func waitFor(m *prometheus.Metrics, name string) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if strings.Contains(w.Body.String(), "\n"+name) {
			return
		}
	}
}

// Run works in the background until the process ends.
func ExampleMetrics_Run() {
	metrics, err := prometheus.New(prometheus.Config{Interval: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- metrics.Run(ctx) }()
	stop()
	fmt.Println(<-done)
	// Output: <nil>
}

func ExampleMetrics_Handler() {
	metrics, err := prometheus.New(prometheus.Config{Runtime: true})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(metrics.Handler()) // or http.Handle("/metrics", metrics.Handler())
	defer server.Close()
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, strings.Contains(string(text), "\ngo_goroutines "), err)
	// Output: 200 OK true <nil>
}

// Producers are observed through their outbox.
func ExampleMetrics_Enqueue() {
	metrics, err := prometheus.New(prometheus.Config{})
	if err != nil {
		log.Fatal(err)
	}
	store := memory.Open(memory.Config{})
	outbox := postrider.ObserveOutbox(store, metrics)
	err = store.Do(context.Background(), func(ctx context.Context, tx *memory.Tx) error {
		return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil))
	})
	if err != nil {
		log.Fatal(err)
	}
	show(metrics, `postrider_enqueued_messages_total{result="accepted"}`)
	// Output: postrider_enqueued_messages_total{result="accepted"} 1
}

// Refused messages are counted by failure class.
func ExampleMetrics_Publish() {
	metrics, err := prometheus.New(prometheus.Config{})
	if err != nil {
		log.Fatal(err)
	}
	refuse := postrider.PublisherFunc(func(context.Context, postrider.Message) error {
		return postrider.Permanent(errors.New("too large"))
	})
	publisher := broker.ObservePublisher("orders", refuse, metrics) // for relay.New
	publisher.Publish(context.Background(), []postrider.Message{postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)})
	show(metrics, "postrider_publish_failures_total", "postrider_publish_latency_seconds_count")
	// Output:
	// postrider_publish_failures_total{class="permanent",feed="orders"} 1
	// postrider_publish_failures_total{class="unavailable",feed="orders"} 0
	// postrider_publish_failures_total{class="unknown",feed="orders"} 0
	// postrider_publish_latency_seconds_count{feed="orders"} 0
}

// Handlers are observed on their own or, with Use, together with their consumer.
func ExampleMetrics_Handle() {
	metrics, err := prometheus.New(prometheus.Config{})
	if err != nil {
		log.Fatal(err)
	}
	bill := func(context.Context, postrider.Message) error { return nil }
	handle := middleware.Wrap(bill, postrider.Observe("billing", metrics))
	if err := handle(context.Background(), postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)); err != nil {
		log.Fatal(err)
	}
	show(metrics, "postrider_handled_messages_total", "postrider_delivery_latency_seconds_count")
	// Output:
	// postrider_delivery_latency_seconds_count{consumer="billing"} 1
	// postrider_handled_messages_total{consumer="billing",result="error"} 0
	// postrider_handled_messages_total{consumer="billing",result="ok"} 1
}

// A test of alert rules or of a dashboard can check that the names it uses exist.
func ExampleDescriptions() {
	for _, d := range prometheus.Descriptions() {
		if d.Name == "postrider_reconciler_runs_total" {
			fmt.Println(d.Kind, d.Labels)
			fmt.Println(d.Help)
		}
	}
	// Output:
	// counter [reconciler result]
	// Runs of a job in this process, by result: ok, error.
}

func ExampleQuestions() {
	fmt.Println(prometheus.Questions()[0])
	// Output: What is late?
}
