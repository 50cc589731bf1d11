package postridertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	brokermemory "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/postridertest"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// ledger is a business table: writes of a transaction become visible when it commits.
type ledger map[string]int

func (l ledger) book(ctx context.Context, account string) {
	postrider.AfterCommit(ctx, func() { l[account]++ })
}

// booking returns a world with a consumer that books each message once.
func booking(t testing.TB, f postridertest.Faults) (*postridertest.World, ledger) {
	w := postridertest.New(t, postridertest.Config{Faults: f})
	booked := make(ledger)
	in := w.Inbox("billing", inbox.Config{})
	in.Handle("*", func(ctx context.Context, _ *memory.Tx, m postrider.Message) error {
		booked.book(ctx, m.AggregateID)
		return nil
	})
	return w, booked
}

func TestCrashAfterPublish(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		w, booked := booking(t, postridertest.Faults{Crash: postridertest.Nth(2)})
		commit(t, w, event("a", "1"), event("a", "2"), event("a", "3"))
		r := w.Settle()
		r.RequireClean(t)
		if len(r.Sent) != 5 || len(r.Repeated) != 2 || len(booked) != 3 || booked["1"] != 1 || w.Faults.Struck()["Crash"] != 1 {
			t.Fatal(booked, r)
		}
		if !strings.Contains(r.String(), "crashed") {
			t.Error(r)
		}
	})
}

func TestLostAcknowledgement(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		w, booked := booking(t, postridertest.Faults{LoseAck: postridertest.Nth(1)})
		commit(t, w, event("a", "1"))
		r := w.Settle()
		if len(r.Received) != 2 || len(r.Handled) != 1 || len(r.Repeated) != 1 || booked["1"] != 1 {
			t.Fatal(booked, r)
		}
	})
}

func TestLostCommit(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		w, booked := booking(t, postridertest.Faults{LoseCommit: postridertest.Nth(1)})
		commit(t, w, event("a", "1"))
		r := w.Settle()
		if len(r.Received) != 2 || len(r.Handled) != 1 || len(r.Failed)+len(r.Repeated) != 0 || booked["1"] != 1 {
			t.Fatal(booked, r)
		}
	})
}

func TestRefusedMessageIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, booked := booking(t, postridertest.Faults{Refuse: postridertest.Every(1).Of(match{AggregateID: "2"}), Outage: postridertest.Nth(1)})
		commit(t, w, event("a", "1"), event("a", "2"))
		r := w.Settle()
		if len(r.Dead) != 1 || r.Dead[0].AggregateID != "2" || booked["1"] != 1 || booked["2"] != 0 {
			t.Fatal(booked, r)
		}
	})
}

// TestConsumersWithoutInboxAreCaught checks that each of these faults breaks a consumer that counts
// messages without an inbox, and that it does not break one with an inbox.
func TestConsumersWithoutInboxAreCaught(t *testing.T) {
	for name, f := range map[string]postridertest.Faults{
		"duplicate":   {Duplicate: postridertest.Every(2)},
		"lose answer": {LoseAnswer: postridertest.Nth(2)},
		"crash":       {Crash: postridertest.Nth(2)},
		"lose ack":    {LoseAck: postridertest.Every(2)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, booked := booking(t, f)
				naive := make(ledger)
				w.Subscribe("naive", func(_ context.Context, m postrider.Message) error {
					naive[m.AggregateID]++
					return nil
				})
				commit(t, w, event("a", "1"), event("a", "1"), event("a", "1"))
				r := w.Settle()
				if naive["1"] <= 3 {
					t.Error("the fault was not noticed", r)
				}
				if booked["1"] != 3 {
					t.Error(booked, r)
				}
			})
		})
	}
}

// TestReorderedKeyIsNoticed checks that a consumer can notice messages of a key in the wrong order.
func TestReorderedKeyIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := postridertest.New(t, postridertest.Config{Faults: postridertest.Faults{ReorderKey: postridertest.Nth(1)}})
		last, wrong := "", 0
		w.Subscribe("watcher", func(_ context.Context, m postrider.Message) error {
			if m.Type < last {
				wrong++
			}
			last = m.Type
			return nil
		})
		commit(t, w, event("a", "1"), event("b", "1"), event("c", "1"))
		if r := w.Settle(); wrong != 1 {
			t.Error(wrong, r)
		}
	})
}

// TestEverythingAtOnce combines all faults, with many seeds: each message takes effect once, and
// those of a key in order.
func TestEverythingAtOnce(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			some := postridertest.Sometimes(0.1)
			cfg := postridertest.Config{
				Faults: postridertest.Faults{Seed: seed + 1, Duplicate: some, LoseAnswer: some, Crash: postridertest.Nth(7, 30), Outage: some,
					Reorder: some, LoseAck: some, LoseCommit: some},
			}
			if seed%2 == 0 {
				cfg.Store.Shards = 3
			} else {
				cfg.Faults.Slow = some
			}
			w := postridertest.New(t, cfg)
			booked := make(map[string][]string)
			in := w.Inbox("billing", inbox.Config{})
			in.Handle("*", func(ctx context.Context, _ *memory.Tx, m postrider.Message) error {
				postrider.AfterCommit(ctx, func() { booked[m.AggregateID] = append(booked[m.AggregateID], m.Type) })
				return nil
			})
			for i := range 10 {
				commit(t, w, event(fmt.Sprint(i), "1"), event(fmt.Sprint(i), "2"), event(fmt.Sprint(i), "3"))
			}
			w.Settle().RequireClean(t)
			for _, id := range []string{"1", "2", "3"} {
				if got := strings.Join(booked[id], ""); got != "0123456789" {
					t.Errorf("%s: %s", id, got)
				}
			}
		})
	}
}

// TestFaultyPublisherHasNames checks that a faulty publisher reports the same names as the wrapped
// one.
func TestFaultyPublisherHasNames(t *testing.T) {
	in := postridertest.Inject(t, postridertest.Faults{})
	m := event("a", "1")
	m.Topic = "orders"
	nameless := postrider.PublisherFunc(func(context.Context, postrider.Message) error { return nil })
	for want, pub := range map[string]postrider.Publisher{"orders": brokermemory.New(), "": nameless} {
		namer, ok := in.Publisher(pub).(broker.Namer)
		if !ok || namer.NameOf(&m) != want {
			t.Errorf("%T: the name is not %q", pub, want)
		}
	}
}

// TestProcess uses a process outside of a world: the next relay sends again what the dead one had
// published and not settled.
func TestProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.Open(memory.Config{Shards: 1})
		tx := store.Begin()
		if err := store.Enqueue(t.Context(), tx, event("a", "1")); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		in := postridertest.Inject(t, postridertest.Faults{Crash: postridertest.Nth(1)})
		sent := 0
		pub := in.Publisher(postrider.PublisherFunc(func(context.Context, postrider.Message) error { sent++; return nil }))
		for life := range 2 {
			p := in.Process()
			r, err := relay.New(p.Store(store), pub, relay.Config{Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			ctx, end := p.Context(ctx)
			began := time.Now()
			err = r.Run(ctx)
			end()
			stop()
			if crashed := life == 0; crashed != p.Dead() || crashed && time.Since(began) > time.Second || !crashed && err != nil {
				t.Errorf("life %d: dead %t after %s: %v", life, p.Dead(), time.Since(began), err)
			}
		}
		if sent != 2 {
			t.Errorf("sent %d times", sent)
		}

		p := in.Process()
		feed, err := p.Store(store).Open(t.Context(), "other", feeds.Member{Lease: time.Second, Create: true})
		if err != nil {
			t.Fatal(err)
		}
		p.Kill()
		p.Kill()
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"Open": func() error {
				_, err := p.Store(store).Open(ctx, "other", feeds.Member{Lease: 1, Create: true})
				return err
			},
			"Balance":  func() error { _, err := feed.Balance(ctx); return err },
			"Read":     func() error { _, err := feed.Read(ctx, nil); return err },
			"Settle":   func() error { _, err := feed.Settle(ctx, nil); return err },
			"Release":  func() error { return feed.Release(ctx, nil) },
			"Defer":    func() error { return feed.Defer(ctx, nil) },
			"Blocked":  func() error { _, err := feed.Blocked(ctx, 0); return err },
			"Due":      func() error { _, err := feed.Due(ctx, feeds.DueRequest{Limit: 1}); return err },
			"Conclude": func() error { _, err := feed.Conclude(ctx, nil); return err },
			"Suspect":  func() error { _, err := feed.Suspect(ctx, feeds.Start{}); return err },
			"Publish":  func() error { return errors.Join(pub.Publish(ctx, numbered("a"))...) },
		} {
			if err := call(); !errors.Is(err, postridertest.ErrInjected) {
				t.Errorf("%s of a dead process: %v", name, err)
			}
		}
		if err := feed.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
