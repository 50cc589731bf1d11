package prometheus_test

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/prometheus"
)

// full returns metrics with a value for every series. Call it in a bubble.
func full(t *testing.T) *prometheus.Metrics {
	t.Helper()
	m := newMetrics(t, prometheus.Config{})
	m.AddRelay("main", "orders", relayStats)
	m.AddInbox("billing", inboxStats)
	m.AddConsumer("search", consumerStats)
	m.AddReconciler(reconcilerStats)
	m.AddDatabase("main", steady(fullStanding(), fullHealth()))

	msgs := []postrider.Message{{ID: postrider.NewID(), Payload: []byte("four")}, {ID: postrider.NewID()}, {ID: postrider.NewID()}}
	_, enqueued := m.Enqueue(t.Context(), msgs)
	enqueued([]int{1}, nil)
	_, published := m.Publish(t.Context(), "orders", msgs)
	published([]error{nil, postrider.Permanent(errors.New("too large")), postrider.Unavailable(postrider.ErrNotTried)})
	_, handled := m.Handle(t.Context(), "billing", &msgs[0])
	handled(nil)

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	synctest.Wait()
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	return m
}

// The scraped metrics match the descriptions in names, kinds and labels, and none is missing.
func TestDescriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := full(t)
		text, got := page(t, m, "text/plain"), scrape(t, m)
		known := make(map[string]bool)
		for _, d := range prometheus.Descriptions() {
			if known[d.Name] {
				t.Errorf("%s is described twice", d.Name)
			}
			known[d.Name] = true
			if !slices.Contains(prometheus.Questions(), d.Question) {
				t.Errorf("%s answers %q", d.Name, d.Question)
			}
			if !strings.Contains(text, "# TYPE "+d.Name+" "+d.Kind+"\n") {
				t.Errorf("%s is not scraped as a %s", d.Name, d.Kind)
			}
			name := d.Name
			if d.Kind == "histogram" {
				name += "_count"
			}
			if len(got.of(name)) == 0 {
				t.Errorf("%s has no series", name)
			}
			for series := range got.of(name) {
				for _, label := range d.Labels {
					if !strings.Contains(series, label+`="`) {
						t.Errorf("%s lacks the label %s", series, label)
					}
				}
				if n := strings.Count(series, `="`); n != len(d.Labels) {
					t.Errorf("%s has %d labels, described are %d", series, n, len(d.Labels))
				}
			}
		}
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok && !known[strings.Fields(name)[0]] {
				t.Errorf("not described: %s", line)
			}
		}
		if openMetrics := page(t, m, "application/openmetrics-text;version=1.0.0"); !strings.HasSuffix(openMetrics, "# EOF\n") {
			t.Error("a scraper that asks for OpenMetrics does not get it")
		}
	})
}

// Prometheus' own linter accepts names, units and help texts.
func TestPromtool(t *testing.T) {
	var text string
	synctest.Test(t, func(t *testing.T) { text = page(t, full(t), "text/plain") })
	promtool(t, text, "check", "metrics")
}

func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "postrider_") {
		t.Errorf("promtool %s (Debian package prometheus): %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := scrape(t, full(t))
		for series, want := range map[string]float64{
			`postrider_pending_messages{database="main",feed="orders"}`:                                         12,
			`postrider_oldest_pending_age_seconds{database="main",feed="orders"}`:                               3,
			`postrider_shard_pending_messages{database="main",feed="orders",shard="0",tenant=""}`:               10,
			`postrider_shard_pending_messages{database="main",feed="orders",shard="0",tenant="acme"}`:           2,
			`postrider_shard_oldest_pending_age_seconds{database="main",feed="orders",shard="0",tenant="acme"}`: 1,
			`postrider_shard_oldest_pending_age_seconds{database="main",feed="orders",shard="1",tenant=""}`:     0,
			`postrider_feed_relays{database="main",feed="orders"}`:                                              1,
			`postrider_canary_age_seconds{database="main",feed="orders"}`:                                       2,
			`postrider_deferred_messages{database="main",feed="orders",status="parked"}`:                        5,
			`postrider_consumer_deferred_messages{consumer="billing",database="main",status="dead"}`:            4,
			`postrider_enqueued_messages_total{result="accepted"}`:                                              2,
			`postrider_enqueued_messages_total{result="repeated"}`:                                              1,
			`postrider_published_bytes_total{feed="orders"}`:                                                    4,
			`postrider_publish_latency_seconds_count{feed="orders"}`:                                            1,
			`postrider_publish_failures_total{class="permanent",feed="orders"}`:                                 1,
			`postrider_publish_failures_total{class="unavailable",feed="orders"}`:                               0,
			`postrider_handled_messages_total{consumer="billing",result="ok"}`:                                  1,
			`postrider_inbox_messages_total{consumer="billing",verdict="late"}`:                                 6,
			`postrider_published_messages_total{database="main",feed="orders"}`:                                 1,
			`postrider_store_calls_total{call="settle",database="main",feed="orders"}`:                          8,
			`postrider_relay_paused{database="main",feed="orders"}`:                                             1,
			`postrider_reconciler_runs_total{reconciler="enrollments",result="ok"}`:                             3,
			`postrider_reconciler_fixed_total{reconciler="enrollments"}`:                                        3,
			`postrider_oldest_transaction_age_seconds{database="main"}`:                                         60,
			`postrider_table_dead_rows{database="main",table="log"}`:                                            7,
			`postrider_replication_slot_retained_bytes{database="main",slot="standby"}`:                         4096,
			`postrider_database_up{database="main"}`:                                                            1,
		} {
			got.want(t, series, want)
		}
	})
}

func TestRegistry(t *testing.T) {
	own := client.NewRegistry()
	newMetrics(t, prometheus.Config{Registerer: own, Runtime: true})
	if _, err := prometheus.New(prometheus.Config{Registerer: own}); err == nil {
		t.Error("a second Metrics in one registry is not refused")
	}
	newMetrics(t, prometheus.Config{Registerer: client.WrapRegistererWithPrefix("b_", own), Runtime: true})

	quiet := newMetrics(t, prometheus.Config{Runtime: true})
	if got := scrape(t, quiet); len(got.of("go_goroutines")) != 1 || len(got.of("process_open_fds")) != 1 {
		t.Error("the metrics of the runtime are missing")
	}
	global, err := client.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range global {
		if strings.HasPrefix(f.GetName(), "postrider_") {
			t.Errorf("%s is in the global registry", f.GetName())
		}
	}

	// If the registerer cannot be read, only these metrics are served.
	wrapped := newMetrics(t, prometheus.Config{Registerer: client.WrapRegistererWithPrefix("app_", client.NewRegistry())})
	scrape(t, wrapped).want(t, `postrider_enqueued_messages_total{result="accepted"}`, 0)
}

// Broken metrics elsewhere in the registry do not hide these.
func TestBrokenNeighbour(t *testing.T) {
	registry := client.NewRegistry()
	var log strings.Builder
	m := newMetrics(t, prometheus.Config{Registerer: registry, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	registry.MustRegister(broken{client.NewDesc("app_broken", "Always fails.", nil, nil)})
	scrape(t, m).want(t, `postrider_enqueued_messages_total{result="accepted"}`, 0)
	if !strings.Contains(log.String(), "out of order") {
		t.Errorf("the failure is not logged: %q", log.String())
	}
}

type broken struct{ desc *client.Desc }

func (b broken) Describe(to chan<- *client.Desc) { to <- b.desc }
func (b broken) Collect(to chan<- client.Metric) {
	to <- client.NewInvalidMetric(b.desc, errors.New("out of order"))
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]prometheus.Config{
		"Interval":        {Interval: -1},
		"HealthInterval":  {HealthInterval: -1},
		"Timeout":         {Timeout: -1},
		"LatencyBuckets":  {LatencyBuckets: []float64{1, 1}},
		"DurationBuckets": {DurationBuckets: []float64{2, 1}},
	} {
		if _, err := prometheus.New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a wrong %s: %v", name, err)
		}
	}
}
