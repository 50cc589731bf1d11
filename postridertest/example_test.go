package postridertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/postrider/postrider"
	broker "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/postridertest"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/memory"
)

// exampleT replaces the *testing.T of a test. It prints why the test fails.
type exampleT struct{ testing.TB }

func (exampleT) Helper()                           {}
func (exampleT) Failed() bool                      { return false }
func (exampleT) Cleanup(func())                    {}
func (exampleT) Output() io.Writer                 { return io.Discard }
func (exampleT) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

var (
	t     exampleT
	quiet = slog.New(slog.DiscardHandler)
)

// PlaceOrder is the code under test. With a database, Tx is pgx.Tx or *sql.Tx.
func PlaceOrder[Tx any](ctx context.Context, tx Tx, outbox postrider.Outbox[Tx], id string, total int) error {
	// … INSERT INTO orders …
	return outbox.Enqueue(ctx, tx, postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: id}, map[string]any{"id": id, "total": total}))
}

// Test what one transaction has enqueued. The outbox may also be that of a real database.
func ExampleRecord() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	var outbox *postridertest.Recorder[*memory.Tx] = postridertest.Record[*memory.Tx](store)

	err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		if err := PlaceOrder(ctx, tx, outbox, "42", 30); err != nil {
			return err
		}
		var view postridertest.View = outbox.In(tx) // not committed yet
		view.Exactly(t, postridertest.Match{Type: "order.placed"})
		return nil
	})
	fmt.Println(err)

	m := outbox.Enqueued(t, postridertest.Match{
		Type:        "order.placed",
		AggregateID: "42",
		DedupKey:    "order.placed:order:42:1",
		Payload:     map[string]any{"total": 30}, // may have more fields
	})
	fmt.Println(m.OrderKey(), string(m.Payload))
	outbox.RequireNone(t, postridertest.Match{Type: "order.cancelled"})

	// A failure shows what was enqueued instead.
	outbox.Enqueued(t, postridertest.Match{Type: "order.placed", Payload: map[string]any{"total": 31}})
	// Output:
	// <nil>
	// order/42 {"id":"42","total":30}
	// postridertest: no message was enqueued that matches Match{Type: "order.placed", Payload: {"total":31}}
	// enqueued: 1
	//   #  type          key       dedup key                payload
	//   1  order.placed  order/42  order.placed:order:42:1  {"id":"42","total":30}  Payload.total is 30, want 31
}

// A transaction whose end the recorder cannot see, because its context does not come from a
// transactor.
func ExampleRecorder_RolledBack() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	outbox := postridertest.Record[*memory.Tx](store)

	tx := store.Begin()
	left, err := outbox.Offer(ctx, tx, postrider.UniqueEvent("a", postrider.Aggregate{Type: "order", ID: "1"}, nil), postrider.UniqueEvent("a", postrider.Aggregate{Type: "order", ID: "1"}, nil))
	fmt.Println(left, err)
	fmt.Println(outbox.Enqueue(ctx, tx, postrider.Event("b", postrider.Aggregate{Type: "order", ID: "1"}, nil)))
	found := outbox.InOrder(t, postridertest.Match{Type: "a"}, postridertest.Match{Type: "b"})
	fmt.Println(len(found), len(outbox.All()))

	fmt.Println(tx.Rollback())
	outbox.RolledBack(tx)
	outbox.RequireNone(t)
	outbox.Reset() // for the next part of the test
	// Output:
	// [1] <nil>
	// <nil>
	// 2 2
	// <nil>
}

func ExampleMatch_Mismatch() {
	want := postridertest.Match{
		Type:    "order.placed",
		Headers: map[string]string{"region": "eu"},
		Where: func(m postrider.Message) error {
			if m.Priority < 5 {
				return errors.New("want a higher priority")
			}
			return nil
		},
	}
	fmt.Println(want.String())
	fmt.Println(want.Mismatch(postrider.Message{Type: "order.placed", Headers: map[string]string{"region": "us"}}))
	fmt.Println(want.Mismatch(postrider.Message{Type: "order.placed", Headers: map[string]string{"region": "eu"}}))
	// Output:
	// Match{Type: "order.placed", Headers: map[region:eu], Where: …}
	// header "region" is "us", want "eu"
	// Where: want a higher priority
}

// A consumer under faults: messages are duplicated, and an acknowledgement is lost. In a test, wrap
// all of it in synctest.Test, so that it takes no time.
func ExampleNew() {
	ctx := context.Background()
	var w *postridertest.World = postridertest.New(t, postridertest.Config{
		Faults: postridertest.Faults{
			Duplicate: postridertest.Every(2),
			LoseAck:   postridertest.Nth(1).Of(postridertest.Match{Type: "order.placed"}),
		},
	})
	total := 0
	billing := w.Inbox("billing", inbox.Config{})
	inbox.On(billing, "order.placed", func(ctx context.Context, tx *memory.Tx, order struct{ Total int }) error {
		postrider.AfterCommit(ctx, func() { total += order.Total }) // with a database: UPDATE …, by tx
		return nil
	})
	deliveries := 0
	w.Subscribe("audit", func(ctx context.Context, m postrider.Message) error {
		deliveries++
		return nil
	})

	for _, id := range []string{"1", "2", "3", "4"} {
		err := w.Store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error { return PlaceOrder(ctx, tx, w.Outbox, id, 10) })
		if err != nil {
			fmt.Println(err)
		}
	}
	var report *postridertest.Report = w.Settle()
	report.RequireClean(t)
	fmt.Println(total, deliveries)
	fmt.Println(len(report.Sent), len(report.Handled), len(report.Repeated))
	fmt.Println(w.Faults.Struck())
	// Output:
	// 40 7
	// 6 11 3
	// map[Duplicate:2 LoseAck:2]
}

// Retries, dead letters, and messages that are due later.
func ExampleWorld_Advance() {
	ctx := context.Background()
	w := postridertest.New(t, postridertest.Config{})
	tries := 0
	in := w.Inbox("billing", inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Second}}}) // in a bubble it could be hours
	in.Handle("order.placed", func(ctx context.Context, tx *memory.Tx, m postrider.Message) error {
		if tries++; tries == 1 {
			return errors.New("the card terminal is offline")
		}
		return nil
	})
	err := w.Store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error { return PlaceOrder(ctx, tx, w.Outbox, "1", 10) })
	fmt.Println(err)
	order := postridertest.Match{Type: "order.placed"}

	report := w.Deliver()
	var step postridertest.Step = report.Require(t, postridertest.Failed, order)
	fmt.Println(step.By, step.What, step.Err)
	fmt.Println(report.Summary())
	report = w.Advance(time.Second)
	report.Require(t, postridertest.Handled, order)

	// An operator sends it again, together with a message of an unknown type.
	w.Publish(w.Broker.Messages()[0], postrider.Event("order.lost", postrider.Aggregate{Type: "order", ID: "1"}, nil))
	report = w.Deliver()
	report.Require(t, postridertest.Repeated, order)
	report.Require(t, postridertest.Dead, postridertest.Match{Type: "order.lost"})
	for _, what := range []postridertest.What{postridertest.Waiting, postridertest.Unconfirmed, postridertest.Crashed} {
		report.RequireNone(t, what, postridertest.Match{})
	}
	report.Require(t, postridertest.Enqueued, order)
	report.Require(t, postridertest.Sent, order)
	report.Require(t, postridertest.Received, order)
	fmt.Println(w.Report().Dead[0].LastError)
	fmt.Println(len(report.String()) > len(report.Summary())) // t.Fatal(report) shows all steps in a table
	// Output:
	// <nil>
	// billing failed the card terminal is offline
	// 1 enqueued, 1 sent, 0 unconfirmed, 1 received, 0 handled, 0 repeated, 1 failed, 0 dead, 1 later, 0 pending
	// inbox: no handler for this type of message: "order.lost"
	// true
}

// Faults without a world: wrap the application's own publisher, consumer and stores.
func ExampleInject() {
	ctx := context.Background()
	store, queue := memory.Open(memory.Config{Shards: 1}), broker.New()
	var half postridertest.When = postridertest.Sometimes(0.5)
	var faults *postridertest.Injector = postridertest.Inject(t, postridertest.Faults{
		Seed:       7, // or by the environment variable postridertest.SeedVariable
		Crash:      postridertest.Nth(1),
		Duplicate:  half,
		LoseCommit: postridertest.Nth(1),
	})
	pub := faults.Publisher(queue)

	err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error { return PlaceOrder(ctx, tx, store, "42", 30) })
	fmt.Println(err)
	// The first relay crashes after the broker has the message and before the store records it. The
	// next one sends it again.
	for range 2 {
		var process *postridertest.Process = faults.Process()
		carrier, err := relay.New(process.Store(store), pub, relay.Config{
			Lease: 200 * time.Millisecond, BalanceInterval: 50 * time.Millisecond, Logger: quiet,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		life, end := process.Context(ctx)
		life, stop := context.WithCancel(life)
		go func() {
			_, _ = queue.Wait(life, 2)
			stop()
		}()
		_ = carrier.Run(life) // the result of a dead process is lost
		end()
		fmt.Println(process.Dead())
		process.Kill() // a test can kill a process directly, too
	}
	errs := pub.Publish(ctx, []postrider.Message{postrider.Event("too.late", postrider.Aggregate{Type: "order", ID: "42"}, nil)})
	fmt.Println(errors.Is(errs[0], postridertest.ErrInjected))

	in, err := inbox.New(postridertest.InboxStore[*memory.Tx](faults, store.Inbox()), "billing", inbox.Config{Logger: quiet})
	fmt.Println(err)
	calls := 0
	working, stop := context.WithCancel(ctx)
	in.Handle("*", func(ctx context.Context, tx *memory.Tx, m postrider.Message) error {
		if calls++; calls == 2 {
			stop()
		}
		return nil
	})
	fmt.Println(in.Run(working, faults.Consumer(queue.Consumer("", "billing", 0))))
	fmt.Println(calls, in.Stats().Handled) // the first call was rolled back
	fmt.Println(len(queue.Messages()) >= 2, faults.Seed(), faults.Struck()["Crash"], faults, postridertest.SeedVariable)
	// Output:
	// <nil>
	// true
	// false
	// true
	// <nil>
	// <nil>
	// 2 1
	// true 7 1 Duplicate 1 of 1, Crash 1 of 2, LoseCommit 1 of 2 POSTRIDERTEST_SEED
}
