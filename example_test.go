package postrider_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// Event fills every default and leaves the dedup key empty: the same thing may happen to the order
// again.
func ExampleEvent() {
	m := postrider.Event("order.shipped", postrider.Aggregate{Type: "order", ID: "42"}, map[string]string{"carrier": "pony"},
		func(m *postrider.Message) {
			m.TenantID = "acme"
			m.Headers = map[string]string{"source": "warehouse"}
		})
	fmt.Println(m.OrderKey(), m.SchemaVersion, string(m.Payload))
	fmt.Printf("%q\n", m.DedupKey)
	// Output:
	// order/42 1 {"carrier":"pony"}
	// ""
}

// UniqueEvent derives the dedup key from type, aggregate, schema version and tenant: an order is
// placed once.
func ExampleUniqueEvent() {
	m := postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	fmt.Println(m.DedupKey)
	// Output: order.placed:order:42:1
}

// A natural key already exists in the business. Every producer that states the fact again, such as
// a reconciler that looks for enrolments without their event, arrives at the same key.
func ExampleUniqueEvent_naturalKey() {
	enrollmentID := 42
	m := postrider.UniqueEvent("student.enrolled", postrider.Aggregate{Type: "student", ID: "7"}, nil, func(m *postrider.Message) {
		m.DedupKey = fmt.Sprintf("enrollment:%d", enrollmentID)
	})
	fmt.Println(m.DedupKey)
	// Output: enrollment:42
}

// A version key is for facts that happen to an aggregate many times: one for each version of its
// row.
func ExampleUniqueEvent_versionKey() {
	rowVersion := 9
	m := postrider.UniqueEvent("profile.changed", postrider.Aggregate{Type: "user", ID: "7"}, nil, func(m *postrider.Message) {
		m.DedupKey = fmt.Sprintf("%s:%s:v%d", m.Type, m.AggregateID, rowVersion)
	})
	fmt.Println(m.DedupKey)
	// Output: profile.changed:7:v9
}

// A time-window key limits how often something happens: here, to one reminder a day.
func ExampleUniqueEvent_timeWindowKey() {
	now := time.Date(2026, time.March, 1, 17, 45, 0, 0, time.UTC)
	m := postrider.UniqueEvent("payment.reminder", postrider.Aggregate{Type: "invoice", ID: "7"}, nil, func(m *postrider.Message) {
		m.DedupKey = fmt.Sprintf("%s:%s:%s", m.Type, m.AggregateID, now.UTC().Format(time.DateOnly))
	})
	fmt.Println(m.DedupKey)
	// Output: payment.reminder:7:2026-03-01
}

// orders depends on the type of its transactions, and on no store.
type orders struct {
	outbox postrider.Outbox[*sql.Tx]
}

func (o *orders) place(ctx context.Context, tx *sql.Tx, id string) error {
	// … INSERT INTO orders, by tx …
	return o.outbox.Enqueue(ctx, tx, postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: id}, nil))
}

// An application that depends on the interface uses a database's outbox in production and, without
// any other change, the memory store in its tests.
func ExampleOutbox() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	app := &orders{outbox: memory.Outbox[*sql.Tx](store)}
	if err := app.place(ctx, nil, "42"); err != nil {
		fmt.Println(err)
		return
	}

	// A relay normally reads the messages; a test can read them too.
	feed, err := store.Open(ctx, "test", feeds.Member{Lease: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close(ctx)
	share, err := feed.Balance(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, shard := range share.Shards {
		batches, err := feed.Read(ctx, []feeds.Demand{{Shard: shard, Limit: 10}})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, b := range batches {
			for _, m := range b.Messages {
				fmt.Println(m.Type, m.OrderKey())
			}
		}
	}
	// Output: order.placed order/42
}

// census counts enqueued messages. A custom observer embeds the interface for the methods that it
// does not need.
type census struct {
	postrider.Observer
	n map[string]int
}

func (c census) Enqueue(ctx context.Context, msgs []postrider.Message) (context.Context, func([]int, error)) {
	return ctx, func(repeats []int, err error) {
		if err != nil {
			return
		}
		for i := range msgs {
			if !slices.Contains(repeats, i) {
				c.n[msgs[i].Type]++
			}
		}
	}
}

// Packages adapter/telemetry/prometheus and adapter/telemetry/otel provide ready-made observers.
func ExampleObserveOutbox() {
	count := census{postrider.Observers(), make(map[string]int)}
	store := memory.Open(memory.Config{})
	outbox := postrider.ObserveOutbox(memory.Outbox[*sql.Tx](store), count)
	for _, id := range []string{"42", "43"} {
		if err := (&orders{outbox}).place(context.Background(), nil, id); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(count.n)
	// Output: map[order.placed:2]
}
