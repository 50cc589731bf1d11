package postridertest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/postridertest"
	"github.com/postrider/postrider/store/memory"
)

type match = postridertest.Match

func event(kind, id string) postrider.Message {
	return postrider.Event(kind, postrider.Aggregate{Type: "order", ID: id}, map[string]string{"id": id})
}

func recorder() (*memory.DB, *postridertest.Recorder[*memory.Tx]) {
	s := memory.Open(memory.Config{})
	return s, postridertest.Record[*memory.Tx](s)
}

func TestRecordKnowsTheEndOfTransactions(t *testing.T) {
	store, rec := recorder()
	var first *memory.Tx
	err := store.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
		first = tx
		if err := rec.Enqueue(ctx, tx, event("placed", "1"), event("paid", "1")); err != nil {
			return err
		}
		rec.In(tx).Exactly(t, match{Type: "placed"}, match{Type: "paid"})
		mustFail(t, func(t testing.TB) { rec.Enqueued(t, match{Type: "placed"}) },
			"no message was enqueued that matches Match{Type: \"placed\"}", "nothing was enqueued", "in a transaction that has not ended")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	var second *memory.Tx
	err = store.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
		second = tx
		if err := rec.Enqueue(ctx, tx, event("placed", "2")); err != nil {
			t.Error(err)
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if m := rec.Enqueued(t, match{Type: "placed"}); m.AggregateID != "1" || m.ID.IsZero() {
		t.Error(m)
	}
	rec.In(first).Enqueued(t, match{Type: "paid"})
	rec.In(second).RequireNone(t)
	mustFail(t, func(t testing.TB) { rec.Enqueued(t, match{AggregateID: "2"}) },
		`AggregateID is "1", want "2"`, "not counted: 1", "rolled back")
	mustFail(t, func(t testing.TB) { rec.In(second).Enqueued(t, match{Type: "paid"}) }, "enqueued, by another transaction")
	rec.Reset()
	rec.RequireNone(t)
}

func TestRecordWithoutTransactor(t *testing.T) {
	store, rec := recorder()
	tx := store.Begin()
	if err := rec.Enqueue(t.Context(), tx, event("placed", "1")); err != nil {
		t.Fatal(err)
	}
	rec.Enqueued(t, match{Type: "placed"})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	rec.RolledBack(tx)
	rec.RequireNone(t)
	rec.In(tx).RequireNone(t)
}

// TestRecordOfIncomparableTransactions checks that transactions of an incomparable type never count
// as equal and do not panic.
func TestRecordOfIncomparableTransactions(t *testing.T) {
	type tx []string
	rec := postridertest.Record(memory.Outbox[tx](memory.Open(memory.Config{})))
	if err := rec.Enqueue(t.Context(), tx{}, event("placed", "1")); err != nil {
		t.Fatal(err)
	}
	rec.RolledBack(tx{})
	rec.In(tx{}).RequireNone(t)
	rec.Enqueued(t, match{})
}

func TestRecordPassesOnWhatTheOutboxSays(t *testing.T) {
	store, rec := recorder()
	tx := store.Begin()
	once := postrider.UniqueEvent("placed", postrider.Aggregate{Type: "order", ID: "1"}, nil)
	again := postrider.UniqueEvent("placed", postrider.Aggregate{Type: "order", ID: "1"}, nil)
	repeats, err := rec.Offer(t.Context(), tx, once, again)
	if err != nil || len(repeats) != 1 || repeats[0] != 1 {
		t.Fatal(repeats, err)
	}
	if err := rec.Enqueue(t.Context(), tx, postrider.Message{}); !errors.Is(err, postrider.ErrInvalid) {
		t.Fatal(err)
	}
	rec.Exactly(t, match{DedupKey: "placed:order:1:1"})
	mustFail(t, func(t testing.TB) { rec.Enqueued(t, match{Type: "x"}) },
		"left out as a repetition: DedupKey placed:order:1:1", "refused by the outbox: postrider: invalid message: Type is empty")
}

// TestRecordKeepsIDsAndCopies checks that recorded messages have the IDs of the store, and are
// copies.
func TestRecordKeepsIDsAndCopies(t *testing.T) {
	store, rec := recorder()
	tx := store.Begin()
	m := event("placed", "1")
	m.ID = postrider.ID{}
	if err := rec.Enqueue(t.Context(), tx, m); err != nil {
		t.Fatal(err)
	}
	m.Payload[0] = 'x'
	got := rec.All()[0]
	if got.ID.IsZero() || string(got.Payload) != `{"id":"1"}` {
		t.Errorf("%v %s", got.ID, got.Payload)
	}
	got.Payload[0] = 'x'
	rec.Enqueued(t, match{Payload: map[string]string{"id": "1"}})
}

func TestAssertionsOnOrder(t *testing.T) {
	store, rec := recorder()
	tx := store.Begin()
	if err := rec.Enqueue(t.Context(), tx, event("a", "1"), event("b", "1"), event("c", "1")); err != nil {
		t.Fatal(err)
	}
	a, b, c, d := match{Type: "a"}, match{Type: "b"}, match{Type: "c"}, match{Type: "d"}
	if found := rec.InOrder(t, a, c); len(found) != 2 || found[1].Type != "c" {
		t.Error(found)
	}
	rec.InOrder(t)
	if all := rec.Exactly(t, a, b, c); len(all) != 3 {
		t.Error(all)
	}
	rec.RequireNone(t, d)
	mustPass(t, func(t testing.TB) { rec.InOrder(t, b, c) })
	mustFail(t, func(t testing.TB) { rec.InOrder(t, b, a) },
		"1 of 2 messages were enqueued in this order", `missing then is Match{Type: "a"}`, "matches, but comes too early", "is number 1")
	mustFail(t, func(t testing.TB) { rec.Exactly(t, a, b) }, "3 messages were enqueued, want exactly 2", "is too many")
	mustFail(t, func(t testing.TB) { rec.Exactly(t, a, b, c, d) }, `number 4 is missing: Match{Type: "d"}`)
	mustFail(t, func(t testing.TB) { rec.Exactly(t, a, c, b) }, `Type is "b", want "c"`)
	mustFail(t, func(t testing.TB) { rec.RequireNone(t, d, b) }, "1 messages were enqueued that should not", `matches Match{Type: "b"}`)
	mustFail(t, func(t testing.TB) { rec.RequireNone(t) }, "3 messages were enqueued that should not")
}
