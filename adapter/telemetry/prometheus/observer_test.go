package prometheus_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/broker"
	memorybroker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/middleware"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/memory"
)

// A message from a producer through a relay and a broker to a consumer is counted once at each
// station.
func TestObserver(t *testing.T) {
	const n = 1000
	m := newMetrics(t, prometheus.Config{})
	store, queues := memory.Open(memory.Config{}), memorybroker.New()
	var refused sync.Map
	queues.Fail(func(msg postrider.Message) error {
		if _, before := refused.LoadOrStore(msg.ID, true); !before && msg.AggregateID == "7" {
			return postrider.Unavailable(errors.New("not now"))
		}
		return nil
	})
	carrier, err := relay.New(store, broker.ObservePublisher("orders", queues, m), relay.Config{Feed: "orders", Outage: retry.Policy{First: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	m.AddRelay("main", "orders", carrier.Stats)

	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var running sync.WaitGroup
	running.Go(func() {
		if err := carrier.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	outbox := postrider.ObserveOutbox(store, m)
	for i := range n / 100 {
		err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
			var msgs []postrider.Message
			for j := range 100 {
				msgs = append(msgs, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: fmt.Sprint(i*100 + j)}, []byte("12345")))
			}
			return outbox.Enqueue(ctx, tx, msgs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := queues.Wait(ctx, n); err != nil {
		t.Fatal(err)
	}
	var handled sync.WaitGroup
	handled.Add(n)
	consumer := middleware.Use(queues.Consumer("", "billing", 1), postrider.Observe("billing", m))
	running.Go(func() {
		err := consumer.Consume(ctx, func(context.Context, postrider.Message) error { handled.Done(); return nil })
		if err != nil {
			t.Error(err)
		}
	})
	handled.Wait()
	stop()
	running.Wait() // running calls are counted

	got := scrape(t, m)
	got.want(t, `postrider_enqueued_messages_total{result="accepted"}`, n)
	got.want(t, `postrider_published_messages_total{database="main",feed="orders"}`, n)
	got.want(t, `postrider_publish_latency_seconds_count{feed="orders"}`, n)
	got.want(t, `postrider_published_bytes_total{feed="orders"}`, 5*n)
	got.want(t, `postrider_publish_failures_total{class="unavailable",feed="orders"}`, 1)
	got.want(t, `postrider_handled_messages_total{consumer="billing",result="ok"}`, n)
	got.want(t, `postrider_handle_duration_seconds_count{consumer="billing"}`, n)
	got.want(t, `postrider_delivery_latency_seconds_count{consumer="billing"}`, n)
}

// idAt returns an ID created at a time; NewID never goes back to the time of a bubble.
func idAt(at time.Time) postrider.ID {
	id := postrider.NewID()
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|0x7000)
	return id
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, prometheus.Config{})
		made := time.Now()
		scheduled := postrider.Message{ID: idAt(made), DeliverAfter: made.Add(time.Hour)}
		foreign, err := postrider.ParseID("c232ab00-9414-11ec-b3c8-9f6bdeced846") // version 1
		if err != nil {
			t.Fatal(err)
		}
		early := []postrider.Message{{ID: idAt(made)}, {ID: foreign}, {ID: foreign, OccurredAt: made}, scheduled}
		time.Sleep(2 * time.Second)
		_, told := m.Publish(t.Context(), "orders", early)
		time.Sleep(time.Second)
		told(nil)
		got := scrape(t, m)
		got.want(t, `postrider_publish_call_duration_seconds_sum{feed="orders"}`, 1)
		got.want(t, `postrider_publish_latency_seconds_count{feed="orders"}`, 3) // a message without any time has no latency
		got.want(t, `postrider_publish_latency_seconds_sum{feed="orders"}`, 6)   // a negative latency counts as 0

		time.Sleep(time.Until(made.Add(time.Hour + 5*time.Second)))
		_, handled := m.Handle(t.Context(), "billing", &scheduled)
		handled(nil)
		scrape(t, m).want(t, `postrider_delivery_latency_seconds_sum{consumer="billing"}`, 5) // since it was due

		_, handled = m.Handle(t.Context(), "billing", &scheduled)
		handled(errors.New("no"))
		got = scrape(t, m)
		got.want(t, `postrider_delivery_latency_seconds_count{consumer="billing"}`, 1)
		got.want(t, `postrider_handled_messages_total{consumer="billing",result="error"}`, 1)

		_, enqueued := m.Enqueue(t.Context(), early)
		enqueued(nil, errors.New("no"))
		scrape(t, m).want(t, `postrider_enqueued_messages_total{result="failed"}`, 4)
	})
}

// Errors of any kind map to known classes, and names of any bytes to valid labels.
func TestOddErrorsAndNames(t *testing.T) {
	m := newMetrics(t, prometheus.Config{})
	msgs := make([]postrider.Message, 1)
	for i := range 10_000 {
		_, told := m.Publish(t.Context(), "a\xff", msgs)
		told([]error{fmt.Errorf("class %d: %w", i, context.DeadlineExceeded)})
	}
	got := scrape(t, m).of("postrider_publish_failures_total")
	if len(got) != 3 {
		t.Errorf("10000 errors made %d series", len(got))
	}
	got.want(t, "postrider_publish_failures_total{class=\"unknown\",feed=\"a\uFFFD\"}", 10_000)
}

func batch(n int) []postrider.Message {
	msgs := make([]postrider.Message, n)
	for i := range msgs {
		msgs[i] = postrider.Message{ID: postrider.NewID(), Payload: make([]byte, 200)}
	}
	return msgs
}

// The only allocation is the callback: one per call, however many messages.
func TestAllocations(t *testing.T) {
	m := newMetrics(t, prometheus.Config{})
	ctx, msgs := t.Context(), batch(500)
	for name, do := range map[string]func(){
		"Enqueue": func() { _, told := m.Enqueue(ctx, msgs); told(nil, nil) },
		"Publish": func() { _, told := m.Publish(ctx, "orders", msgs); told(nil) },
		"Handle":  func() { _, told := m.Handle(ctx, "billing", &msgs[0]); told(nil) },
	} {
		if n := testing.AllocsPerRun(100, do); n > 1 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	m := newMetrics(b, prometheus.Config{})
	ctx, msgs := b.Context(), batch(500)
	b.ReportAllocs()
	for b.Loop() {
		_, told := m.Publish(ctx, "orders", msgs)
		told(nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(msgs)), "ns/message")
}
