package postridertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/postridertest"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/memory"
)

// commit enqueues messages in a transaction.
func commit(t testing.TB, w *postridertest.World, msgs ...postrider.Message) {
	t.Helper()
	err := w.Store.Do(context.Background(), func(ctx context.Context, tx *memory.Tx) error {
		return w.Outbox.Enqueue(ctx, tx, msgs...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// everywhere runs a test inside and outside of a bubble.
func everywhere(t *testing.T, test func(t *testing.T)) {
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
	t.Run("real time", test)
}

func counts(t *testing.T, r *postridertest.Report, want string) {
	t.Helper()
	if got := r.Summary(); got != want {
		t.Errorf("got  %s\nwant %s\n%v", got, want, r)
	}
}

func TestDeliver(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{})
		billing := w.Inbox("billing", inbox.Config{})
		inbox.On(billing, "order.placed", func(ctx context.Context, tx *memory.Tx, order struct{ ID string }) error {
			return w.Outbox.Enqueue(ctx, tx, postrider.Event("order.billed", postrider.Aggregate{Type: "order", ID: order.ID}, nil))
		})
		billing.Handle("order.billed", func(context.Context, *memory.Tx, postrider.Message) error { return nil })
		var shipped []string
		w.Subscribe("shipping", func(_ context.Context, m postrider.Message) error {
			shipped = append(shipped, m.Type)
			return nil
		})
		commit(t, w, event("order.placed", "1"))
		counts(t, w.Report(), "1 enqueued, 0 sent, 0 unconfirmed, 0 received, 0 handled, 0 repeated, 0 failed, 0 dead, 0 later, 0 pending")
		r := w.Deliver()
		counts(t, r, "2 enqueued, 2 sent, 0 unconfirmed, 4 received, 4 handled, 0 repeated, 0 failed, 0 dead, 0 later, 0 pending")
		r.RequireClean(t)
		if strings.Join(shipped, " ") != "order.placed order.billed" {
			t.Error(shipped)
		}
		if step := r.Require(t, postridertest.Handled, match{Type: "order.billed"}); step.At.IsZero() {
			t.Error(step)
		}
		r.RequireNone(t, postridertest.Failed, match{})
		w.Deliver().RequireNone(t, postridertest.Repeated, match{})
		mustFail(t, func(t testing.TB) { r.Require(t, postridertest.Dead, match{Type: "order.billed"}) },
			"no message was dead that matches", "shipping", "order.placed", "#2")
		mustFail(t, func(t testing.TB) { r.RequireNone(t, "", match{Type: "order.billed"}) }, "a message was enqueued that matches")
	})
}

func TestNothingMovesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{})
		commit(t, w, event("a", "1"))
		time.Sleep(time.Hour)
		if n := len(w.Broker.Messages()); n != 0 {
			t.Errorf("%d messages were sent", n)
		}
	})
}

func TestRolledBackIsNotDelivered(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{})
		_ = w.Store.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
			if err := w.Outbox.Enqueue(ctx, tx, event("a", "1")); err != nil {
				t.Error(err)
			}
			return errors.New("no")
		})
		counts(t, w.Settle(), "0 enqueued, 0 sent, 0 unconfirmed, 0 received, 0 handled, 0 repeated, 0 failed, 0 dead, 0 later, 0 pending")
	})
}

func TestRetriesTakeNoTimeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{})
		in := w.Inbox("billing", inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Hour, 24 * time.Hour}}})
		calls := 0
		in.Handle("*", func(context.Context, *memory.Tx, postrider.Message) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		commit(t, w, event("a", "1"), event("a", "1"))
		r := w.Deliver()
		if calls != 1 || len(r.Failed) != 1 || len(r.Later) != 2 || !r.Settled {
			t.Fatal(calls, r)
		}
		mustFail(t, func(t testing.TB) { r.RequireClean(t) }, "not everything has arrived", "inbox/billing", "not yet", "+1h0m0s")
		began := time.Now()
		r = w.Advance(59 * time.Minute)
		if calls != 1 || time.Since(began) < 59*time.Minute {
			t.Fatal(calls, r)
		}
		if r = w.Advance(2 * time.Minute); calls != 2 {
			t.Fatal(calls, r)
		}
		if r = w.Settle(); calls != 4 || len(r.Handled) != 2 {
			t.Fatal(calls, r)
		}
		r.RequireClean(t)
	})
}

func TestDeliverAfterAndDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{})
		in := w.Inbox("billing", inbox.Config{})
		in.Handle("later", func(context.Context, *memory.Tx, postrider.Message) error { return nil })
		in.Handle("bad", func(context.Context, *memory.Tx, postrider.Message) error {
			return postrider.Permanent(errors.New("cannot be"))
		})
		later := event("later", "1")
		later.DeliverAfter = time.Now().Add(30 * 24 * time.Hour)
		commit(t, w, later, event("bad", "2"))
		r := w.Deliver()
		r.RequireNone(t, postridertest.Sent, match{Type: "later"})
		r.Require(t, postridertest.Dead, match{Type: "bad"})
		r = w.Settle()
		r.Require(t, postridertest.Handled, match{Type: "later"})
		if len(r.Dead) != 1 || r.Dead[0].LastError != "cannot be" {
			t.Fatal(r)
		}
		mustFail(t, func(t testing.TB) { r.RequireClean(t) }, "not everything has arrived")
	})
}

func TestOutageOfTheBroker(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{})
		w.Broker.Fail(func(postrider.Message) error { return postrider.Unavailable(errors.New("down")) })
		commit(t, w, event("a", "1"))
		r := w.Deliver()
		if r.Settled || r.Pending != 1 || len(r.Sent) != 0 || len(r.Unconfirmed) == 0 {
			t.Fatal(r)
		}
		w.Broker.Fail(nil)
		w.Settle().RequireClean(t)
	})
	synctest.Test(t, func(t *testing.T) {
		mustFail(t, func(t testing.TB) {
			w := postridertest.New(t, postridertest.Config{})
			w.Broker.Fail(func(postrider.Message) error { return postrider.Unavailable(errors.New("down")) })
			commit(t, w, event("a", "1"))
			w.Advance(time.Hour)
			w.Settle()
		}, "nothing moves any more: 1 messages are on their way to the broker", "down", "not settled")
	})
}

// TestMessagesWithoutEnd checks that two handlers that answer each other endlessly exceed Patience.
func TestMessagesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mustFail(t, func(t testing.TB) {
			w := postridertest.New(t, postridertest.Config{Patience: time.Second})
			in := w.Inbox("echo", inbox.Config{})
			in.Handle("*", func(ctx context.Context, tx *memory.Tx, m postrider.Message) error {
				return w.Outbox.Enqueue(ctx, tx, event("echo", "1"))
			})
			commit(t, w, event("echo", "1"))
			w.Settle()
		}, "messages keep coming after 1s")
	})
}

func TestWaitingInRealTimeIsRefused(t *testing.T) {
	for _, wait := range []func(w *postridertest.World){
		func(w *postridertest.World) { w.Settle() },
		func(w *postridertest.World) { w.Advance(time.Hour) },
	} {
		mustFail(t, func(t testing.TB) {
			w := postridertest.New(t, postridertest.Config{})
			m := event("later", "1")
			m.DeliverAfter = time.Now().Add(time.Hour)
			commit(t, w, m)
			wait(w)
		}, "would have to wait for", "synctest.Test")
	}
}

func TestRoutesAndTopics(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{Route: func(broker postrider.Publisher) postrider.Publisher {
			return routeByType{broker}
		}})
		var got []string
		w.Subscribe("orders", func(_ context.Context, m postrider.Message) error {
			got = append(got, m.Type)
			return nil
		}, "topic.order", "topic.refund")
		commit(t, w, event("order", "1"), event("user", "1"), event("refund", "1"))
		w.Settle().RequireClean(t)
		if strings.Join(got, " ") != "order refund" {
			t.Error(got)
		}
	})
}

type routeByType struct{ postrider.Publisher }

func (r routeByType) Publish(ctx context.Context, msgs []postrider.Message) []error {
	routed := make([]postrider.Message, len(msgs))
	for i, m := range msgs {
		m.Topic = "topic." + m.Type
		routed[i] = m
	}
	return r.Publisher.Publish(ctx, routed)
}

func TestWrongConfiguration(t *testing.T) {
	mustFail(t, func(t testing.TB) {
		cfg := postridertest.Config{}
		cfg.Relay.BatchSize = -1
		postridertest.New(t, cfg)
	}, "BatchSize is negative")
	mustFail(t, func(t testing.TB) {
		postridertest.New(t, postridertest.Config{}).Inbox("", inbox.Config{})
	}, `name ""`)
}
