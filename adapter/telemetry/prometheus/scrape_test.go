package prometheus_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

func newMetrics(t testing.TB, cfg prometheus.Config) *prometheus.Metrics {
	t.Helper()
	m, err := prometheus.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// page returns the response to a scraper that accepts a format.
func page(t testing.TB, m *prometheus.Metrics, accept string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	m.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// samples is one scrape by series, such as `postrider_shards_held{database="main",feed="orders"}`.
type samples map[string]float64

func scrape(t testing.TB, m *prometheus.Metrics) samples {
	t.Helper()
	all := make(samples)
	for line := range strings.Lines(page(t, m, "text/plain")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all[line[:at]] = value
	}
	return all
}

// of returns the series of a name.
func (s samples) of(name string) samples {
	some := maps.Clone(s)
	maps.DeleteFunc(some, func(series string, _ float64) bool {
		return series != name && !strings.HasPrefix(series, name+"{")
	})
	return some
}

func (s samples) want(t testing.TB, series string, value float64) {
	t.Helper()
	if got, ok := s[series]; !ok || got != value {
		t.Errorf("%s is %v (there: %v), want %v", series, got, ok, value)
	}
}

// gauges simulates a store.
type gauges struct {
	standing func(context.Context) (*admin.Standing, error)
	health   func(context.Context) (*admin.Health, error)
}

func (g gauges) Gauges(ctx context.Context) (*admin.Standing, error) { return g.standing(ctx) }
func (g gauges) Health(ctx context.Context) (*admin.Health, error)   { return g.health(ctx) }

func (g gauges) Problems(_ context.Context, feed string) ([]feeds.Problem, error) {
	problems := []feeds.Problem{{Name: "orders", Since: noon.Add(-9 * time.Second)}, {Name: "over", Over: noon}}
	for i := range 30 {
		problems = append(problems, feeds.Problem{Name: fmt.Sprint(strings.Repeat("n", 190), i), Since: noon})
	}
	return problems, nil
}

// steady always returns the same answers.
func steady(s *admin.Standing, v *admin.Health) gauges {
	return gauges{
		func(context.Context) (*admin.Standing, error) { return s, nil },
		func(context.Context) (*admin.Health, error) { return v, nil },
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func fullStanding() *admin.Standing {
	deferred := admin.DeferredCount{Scheduled: 1, Retry: 2, Waiting: 3, Dead: 4, Parked: 5, Blocked: 6}
	return &admin.Standing{
		At:       noon,
		Enqueued: 1000,
		Feeds: []admin.FeedStanding{{
			Name: "orders", Paused: true, Pending: admin.Estimate{N: 12}, Oldest: noon.Add(-3 * time.Second),
			Canary: noon.Add(-2 * time.Second), Deferred: deferred,
			Members: []admin.Member{{Name: "a", Until: noon.Add(time.Second)}, {Name: "gone", Until: noon.Add(-time.Second)}},
			Shards: []admin.Shard{
				{Shard: 0, Base: 0, Pending: admin.Estimate{N: 10}, Oldest: noon.Add(-3 * time.Second)},
				{Shard: 8, Base: 0, Tenant: "acme", Pending: admin.Estimate{N: 2}, Oldest: noon.Add(-time.Second)},
				{Shard: 1, Base: 1},
			},
		}},
		Consumers: []admin.ConsumerStanding{{Name: "billing", Heard: noon, Deferred: deferred}},
	}
}

func fullHealth() *admin.Health {
	return &admin.Health{
		Size: 1 << 30, Tables: []admin.TableSize{{Name: "log", Bytes: 1 << 20, DeadRows: 7}},
		Capacity: admin.Capacity{Slots: 8, Used: 3}, OldestTransaction: time.Minute, OldestSnapshot: time.Second,
		Connections: 17, MaxConnections: 100, Slots: []admin.Slot{{Name: "standby", Bytes: 4096}},
	}
}

func relayStats() relay.Stats {
	return relay.Stats{
		Published: 1, Failed: 2, Refused: 3, Retried: 4, Deferred: 5, Dead: 6, Reads: 7, Settles: 8, Balances: 9, Fenced: 10,
		Resets: 11, Blocked: 12, Shards: 13, Quota: 14, Members: 15, Failing: 16, Buffered: 17, Paused: "restored",
	}
}

func inboxStats() inbox.Stats {
	return inbox.Stats{Handled: 1, Repeated: 2, Waiting: 3, Failed: 4, Dead: 5, Late: 6}
}

func consumerStats() intake.Stats {
	return intake.Stats{Waiting: 1, Failing: 5, Stopped: 2, Failures: 7, Dead: 4}
}

func reconcilerStats() []reconcile.Stats {
	return []reconcile.Stats{{Job: "enrollments", Runs: 5, Failed: 2, Counts: reconcile.Counts{Found: 4, Fixed: 3}}}
}
