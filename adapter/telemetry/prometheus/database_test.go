package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/admin"
)

// run runs the metrics until the end of the test.
func run(t *testing.T, m *prometheus.Metrics) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
}

const (
	pending = `postrider_pending_messages{database="main",feed="orders"}`
	size    = `postrider_database_size_bytes{database="main"}`
	up      = `postrider_database_up{database="main"}`
	age     = `postrider_figures_age_seconds{database="main"}`
)

// absent checks that a series does not exist.
func (s samples) absent(t *testing.T, series string) {
	t.Helper()
	if got, ok := s[series]; ok {
		t.Errorf("%s is %v, and should not be there", series, got)
	}
}

// A database that stops answering is down at once; its figures disappear after three intervals.
func TestStaleFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		var asked atomic.Int32
		m := newMetrics(t, prometheus.Config{})
		m.AddDatabase("main", gauges{
			func(context.Context) (*admin.Standing, error) {
				asked.Add(1)
				if down.Load() {
					return nil, errors.New("no connection")
				}
				return fullStanding(), nil
			},
			func(context.Context) (*admin.Health, error) {
				if down.Load() {
					return nil, errors.New("no connection")
				}
				return fullHealth(), nil
			},
		})
		got := scrape(t, m)
		got.absent(t, up) // not queried yet
		got.absent(t, pending)
		run(t, m)

		time.Sleep(2 * time.Second)
		for range 100 {
			got = scrape(t, m)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("a hundred scrapes asked the database %d times", n)
		}
		got.want(t, up, 1)
		got.want(t, age, 2)
		got.want(t, pending, 12)
		got.want(t, size, 1<<30)

		down.Store(true)
		time.Sleep(4 * time.Second) // the query at 5 s failed
		got = scrape(t, m)
		got.want(t, up, 0)
		got.want(t, age, 6)
		got.want(t, pending, 12)

		time.Sleep(9*time.Second + time.Millisecond)
		got = scrape(t, m)
		got.absent(t, pending)
		got.want(t, size, 1<<30) // queried every 30 s
		got.want(t, up, 0)
		got.want(t, age, 15.001)

		time.Sleep(75 * time.Second)
		got = scrape(t, m)
		got.absent(t, size)
		got.want(t, up, 0)

		down.Store(false)
		time.Sleep(5 * time.Second)
		got = scrape(t, m)
		got.want(t, pending, 12)
		got.want(t, up, 1)
	})
}

// Figures that are not refreshed do not look current, and a database that is not queried does not
// look alive.
func TestWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := full(t) // its Run has ended
		time.Sleep(16 * time.Second)
		got := scrape(t, m)
		got.want(t, up, 0)
		got.absent(t, pending)

		never := newMetrics(t, prometheus.Config{})
		never.AddDatabase("main", steady(fullStanding(), fullHealth()))
		time.Sleep(16 * time.Second)
		got = scrape(t, never)
		got.want(t, up, 0)
		got.absent(t, age)
	})
}

// A query of a hanging database times out, and delays no other database.
func TestHangingDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, prometheus.Config{})
		m.AddDatabase("hangs", gauges{
			func(ctx context.Context) (*admin.Standing, error) { <-ctx.Done(); return nil, ctx.Err() },
			func(ctx context.Context) (*admin.Health, error) { <-ctx.Done(); return nil, ctx.Err() },
		})
		run(t, m)
		m.AddDatabase("main", steady(fullStanding(), fullHealth())) // while it runs
		synctest.Wait()
		scrape(t, m).want(t, pending, 12)
		time.Sleep(6 * time.Second)
		got := scrape(t, m)
		got.want(t, `postrider_database_up{database="hangs"}`, 0)
		got.want(t, up, 1)
	})
}

func TestDatabaseRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		m := newMetrics(t, prometheus.Config{})
		run(t, m)
		first := m.AddDatabase("main", gauges{
			func(context.Context) (*admin.Standing, error) { asked.Add(1); return fullStanding(), nil },
			steady(nil, fullHealth()).health,
		})
		synctest.Wait()
		second := m.AddDatabase("main", steady(&admin.Standing{At: noon, Feeds: []admin.FeedStanding{{Name: "mails"}}}, fullHealth()))
		first() // it was removed
		time.Sleep(time.Minute)
		if n := asked.Load(); n != 1 {
			t.Errorf("a database that was replaced was asked %d times", n)
		}
		got := scrape(t, m)
		got.absent(t, pending)
		got.want(t, `postrider_pending_messages{database="main",feed="mails"}`, 0)
		second()
		if got := scrape(t, m); len(got.of("postrider_database_up"))+len(got.of("postrider_pending_messages")) != 0 {
			t.Error("a database that was removed is still shown")
		}
	})
}

// Of many tenants, twenty are shown by name. The set is stable, and the others are included in
// their shards.
func TestManyTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants, shards = 10_000, 4
		standing := func(all []admin.Shard) *admin.Standing {
			return &admin.Standing{At: noon, Feeds: []admin.FeedStanding{{Name: "orders", Shards: all}}}
		}
		var all []admin.Shard
		for i := range shards {
			all = append(all, admin.Shard{Shard: i, Base: i, Pending: admin.Estimate{N: 1}})
		}
		for i := range tenants {
			all = append(all, admin.Shard{Shard: shards + i, Base: i % shards, Tenant: fmt.Sprint("t", i),
				Pending: admin.Estimate{N: int64(i)}, Oldest: noon.Add(-time.Duration(i) * time.Second)})
		}
		m := newMetrics(t, prometheus.Config{})
		var now atomic.Pointer[admin.Standing]
		now.Store(standing(all))
		m.AddDatabase("main", gauges{
			func(context.Context) (*admin.Standing, error) { return now.Load(), nil }, steady(nil, fullHealth()).health,
		})
		run(t, m)
		check := func() {
			t.Helper()
			got := scrape(t, m).of("postrider_shard_pending_messages")
			if len(got) != 20+shards {
				t.Errorf("%d series of %d tenants", len(got), tenants)
			}
			sum := 0.0
			for _, n := range got {
				sum += n
			}
			if want := float64(shards + tenants*(tenants-1)/2); sum != want {
				t.Errorf("the shards have %v messages, want %v", sum, want)
			}
			got.want(t, `postrider_shard_pending_messages{database="main",feed="orders",shard="3",tenant="t9999"}`, 9999)
		}
		check()
		scrape(t, m).want(t, `postrider_shard_oldest_pending_age_seconds{database="main",feed="orders",shard="3",tenant=""}`, 9979)

		// Another tenant now has more pending messages: the shown ones stay.
		all = slices.Clone(all)
		few, many := &all[shards+9980].Pending, &all[shards].Pending
		*few, *many = *many, *few
		now.Store(standing(all))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		check()
		scrape(t, m).want(t, `postrider_shard_pending_messages{database="main",feed="orders",shard="0",tenant="t9980"}`, 0)
	})
}

// Of a destination with very many failing names only a few are shown, the oldest failures first.
func TestProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, prometheus.Config{})
		m.AddDatabase("main", steady(fullStanding(), fullHealth()))
		run(t, m)
		got := scrape(t, m)
		got.want(t, `postrider_destination_problem_age_seconds{database="main",feed="orders",name="orders"}`, 9)
		got.absent(t, `postrider_destination_problem_age_seconds{database="main",feed="orders",name="over"}`)
		n := 0
		for series := range got {
			if strings.HasPrefix(series, "postrider_destination_problem_age_seconds{") {
				n++
			}
		}
		if n != 20 {
			t.Errorf("%d names are shown, want 20", n)
		}
	})
}
