package prometheus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
)

// Relays of one feed share a series. It does not fall while one of them runs, and disappears with
// the last.
func TestRelaysAddUp(t *testing.T) {
	const published, held = `postrider_published_messages_total{database="main",feed="orders"}`, `postrider_shards_held{database="main",feed="orders"}`
	m := newMetrics(t, prometheus.Config{})
	one, two := relay.Stats{Published: 100, Shards: 3, Members: 2}, relay.Stats{Published: 10, Shards: 4, Members: 2}
	removeOne := m.AddRelay("main", "orders", func() relay.Stats { return one })
	removeTwo := m.AddRelay("main", "orders", func() relay.Stats { return two })
	got := scrape(t, m)
	got.want(t, published, 110)
	got.want(t, held, 7)
	got.want(t, `postrider_relay_members{database="main",feed="orders"}`, 2)

	removeOne()
	removeOne()
	two.Published = 11
	got = scrape(t, m)
	got.want(t, published, 111)
	got.want(t, held, 4)

	removeTwo()
	if got := scrape(t, m).of("postrider_published_messages_total"); len(got) != 0 {
		t.Errorf("after the last was removed: %v", got)
	}
	m.AddRelay("main", "orders", func() relay.Stats { return relay.Stats{} })
	scrape(t, m).want(t, published, 0)
}

func TestInboxRemoved(t *testing.T) {
	m := newMetrics(t, prometheus.Config{})
	remove := m.AddInbox("billing", inboxStats)
	scrape(t, m).want(t, `postrider_inbox_messages_total{consumer="billing",verdict="repeated"}`, 2)
	remove()
	if got := scrape(t, m).of("postrider_inbox_messages_total"); len(got) != 0 {
		t.Errorf("after it was removed: %v", got)
	}
}

// Successful runs are computed as a difference, which must not fall if a failure is counted before
// its run.
func TestReconcilerRunsDoNotFall(t *testing.T) {
	m := newMetrics(t, prometheus.Config{})
	s := reconcile.Stats{Job: "enrollments", Runs: 10}
	remove := m.AddReconciler(func() []reconcile.Stats { return []reconcile.Stats{s} })
	scrape(t, m).want(t, `postrider_reconciler_runs_total{reconciler="enrollments",result="ok"}`, 10)
	s.Failed = 1
	scrape(t, m).want(t, `postrider_reconciler_runs_total{reconciler="enrollments",result="ok"}`, 10)
	s.Runs = 11
	got := scrape(t, m)
	got.want(t, `postrider_reconciler_runs_total{reconciler="enrollments",result="ok"}`, 10)
	got.want(t, `postrider_reconciler_runs_total{reconciler="enrollments",result="error"}`, 1)
	remove()
	if got := scrape(t, m).of("postrider_reconciler_runs_total"); len(got) != 0 {
		t.Errorf("after it was removed: %v", got)
	}
}

// Everything concurrently, for the race detector; no message may be lost in the count.
func TestConcurrently(t *testing.T) {
	const workers, rounds = 8, 50
	m := newMetrics(t, prometheus.Config{})
	var running, all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() { _ = m.Run(ctx) })
	for w := range workers {
		all.Go(func() {
			msgs := batch(3)
			for i := range rounds {
				feed := fmt.Sprint("feed-", i%7)
				removeRelay := m.AddRelay("main", feed, relayStats)
				removeInbox := m.AddInbox("billing", func() inbox.Stats { return inbox.Stats{} })
				removeReconciler := m.AddReconciler(reconcilerStats)
				removeDatabase := m.AddDatabase(fmt.Sprint("db-", (w+i)%3), steady(fullStanding(), fullHealth()))
				_, published := m.Publish(ctx, feed, msgs)
				published([]error{nil, nil, postrider.ErrNotTried})
				_, handled := m.Handle(ctx, feed, &msgs[0])
				handled(nil)
				if i%10 == 0 {
					scrape(t, m)
				}
				removeRelay()
				removeInbox()
				removeReconciler()
				removeDatabase()
			}
		})
	}
	all.Wait()
	stop()
	running.Wait()
	sum := 0.0
	for i := range 7 {
		sum += scrape(t, m)[fmt.Sprintf(`postrider_publish_latency_seconds_count{feed="feed-%d"}`, i)]
	}
	if sum != 2*workers*rounds {
		t.Errorf("%v messages counted of %d", sum, 2*workers*rounds)
	}
}

func TestConsumer(t *testing.T) {
	m := newMetrics(t, prometheus.Config{})
	defer m.AddConsumer("search", consumerStats)()
	remove := m.AddConsumer("search", consumerStats)
	remove() // its counts stay
	got := scrape(t, m)
	got.want(t, `postrider_consumer_failing_keys{consumer="search",state="failing"}`, 3)
	got.want(t, `postrider_consumer_failing_keys{consumer="search",state="stopped"}`, 2)
	got.want(t, `postrider_consumer_waiting_messages{consumer="search"}`, 1)
	got.want(t, `postrider_consumer_dead_messages_total{consumer="search"}`, 8)
}
