package postgres_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// seat is a member of a feed, with what it has read.
type seat struct {
	feeds.Feed
	h      *house
	share  feeds.Share
	latest map[int]*feeds.Batch // by shard
}

func (h *house) sit(feed string) *seat {
	h.t.Helper()
	s := &seat{h.open(feed), h, feeds.Share{}, map[int]*feeds.Batch{}}
	h.t.Cleanup(func() { _ = s.Close(context.WithoutCancel(h.t.Context())) })
	s.balance()
	return s
}

func (s *seat) balance() feeds.Share {
	s.h.t.Helper()
	var err error
	if s.share, err = s.Balance(s.h.t.Context()); err != nil {
		s.h.t.Fatal(err)
	}
	return s.share
}

// read reads once, for some shards or all that it owns, and returns the types of the messages,
// sorted.
func (s *seat) read(shards ...int) (types []string) {
	s.h.t.Helper()
	want := demand(s.share)
	if len(shards) > 0 {
		want = demand(feeds.Share{Shards: shards})
	}
	batches, err := s.Read(s.h.t.Context(), want)
	if err != nil {
		s.h.t.Fatal(err)
	}
	for i, b := range batches {
		s.latest[b.Shard] = &batches[i]
		for _, m := range b.Messages {
			types = append(types, m.Type)
		}
	}
	slices.Sort(types)
	return types
}

// readAll reads several times, so that it finds everything.
func (s *seat) readAll() (types []string) {
	s.h.t.Helper()
	for range 4 {
		types = append(types, s.read()...)
	}
	slices.Sort(types)
	return types
}

// marks returns marks that settle everything that was read.
func (s *seat) marks() (marks []feeds.Mark) {
	for _, shard := range s.share.Shards {
		m := feeds.Mark{Shard: shard, Batch: s.latest[shard]}
		if m.Batch != nil {
			m.Done = len(m.Batch.Messages)
		}
		marks = append(marks, m)
	}
	return marks
}

func (s *seat) settle() {
	s.h.t.Helper()
	if lost, err := s.Settle(s.h.t.Context(), s.marks()); err != nil || len(lost) > 0 {
		s.h.t.Fatal(lost, err)
	}
}

// release releases the shards at the given marks.
func (s *seat) release(marks []feeds.Mark) {
	s.h.t.Helper()
	if err := s.Release(s.h.t.Context(), marks); err != nil {
		s.h.t.Fatal(err)
	}
	s.latest = map[int]*feeds.Batch{}
}

func (s *seat) leave() {
	s.h.t.Helper()
	s.release(s.marks())
	if err := s.Close(s.h.t.Context()); err != nil {
		s.h.t.Fatal(err)
	}
}

// writer is a transaction that stays open.
type writer struct {
	pgx.Tx
	h *house
}

func (h *house) begin() writer {
	h.t.Helper()
	tx, err := h.pool.Begin(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(h.t.Context())) })
	return writer{tx, h}
}

func (w writer) exec(sql string) {
	w.h.t.Helper()
	if _, err := w.Exec(w.h.t.Context(), w.h.in(sql)); err != nil {
		w.h.t.Fatal(err)
	}
}

func (w writer) commit() {
	w.h.t.Helper()
	if err := w.Commit(w.h.t.Context()); err != nil {
		w.h.t.Fatal(err)
	}
}

func expectTypes(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// TestLateBesideTheFloor commits a message after others with higher numbers were read. A snapshot
// lists only the transactions below its xmax: a floor that is used for a snapshot too early, or
// without a transaction of the reader's own, loses the message.
func TestLateBesideTheFloor(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		s := h.sit("f")
		for range 20 { // other activity on the server sometimes hides the error
			early, late := h.begin(), h.begin()
			early.exec("SELECT pg_current_xact_id()")
			late.exec("INSERT INTO @.messages (type) VALUES ('late')")
			early.exec("INSERT INTO @.messages (type) VALUES ('early')")
			early.commit()
			expectTypes(t, "the earlier transaction", slices.Concat(s.read(), s.read()), "early")
			late.commit()
			expectTypes(t, "the later transaction", s.readAll(), "late")

			alone := h.begin() // no other transaction ends meanwhile
			alone.exec("INSERT INTO @.messages (type) VALUES ('alone')")
			expectTypes(t, "in flight", s.readAll())
			alone.commit()
			expectTypes(t, "a transaction alone", s.readAll(), "alone")
			s.settle()
		}
	})
}

// TestCrossedTransactions commits two transactions, of which the one with the lower ID has the
// higher numbers, and reads them in pages.
func TestCrossedTransactions(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 4})
		s := h.sit("f")
		a, b := h.begin(), h.begin()
		a.exec("SELECT pg_current_xact_id()")
		b.exec("INSERT INTO @.messages (type, key) SELECT 'b', 'k' FROM generate_series(1, 10)")
		a.exec("INSERT INTO @.messages (type, key) SELECT 'a', 'k' FROM generate_series(1, 10)")
		a.commit()
		b.commit()
		var types []string
		for range 20 {
			batches, err := s.Read(t.Context(), []feeds.Demand{{Shard: 0, Limit: 4}, {Shard: 1, Limit: 4}, {Shard: 2, Limit: 4}, {Shard: 3, Limit: 4}})
			if err != nil {
				t.Fatal(err)
			}
			for _, batch := range batches {
				for _, m := range batch.Messages {
					types = append(types, m.Type)
				}
			}
		}
		expectTypes(t, "in the order of their numbers", types, slices.Concat(slices.Repeat([]string{"b"}, 10), slices.Repeat([]string{"a"}, 10))...)
	})
}

// TestFirstMessage reads an empty log before its first message is written. An unused sequence shows
// the number of that message as its last value.
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		h.sit("f").leave() // so that the next member joins with a floor
		s := h.sit("f")
		expectTypes(t, "an empty log", s.readAll())
		h.exec("INSERT INTO @.messages (type) VALUES ('first')")
		expectTypes(t, "the first message", s.readAll(), "first")
	})
}

// TestIdleMemberTakesOver verifies that an idle member finds what is left in a shard that it takes
// over.
func TestIdleMemberTakesOver(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		one, two := h.sit("f"), h.sit("f")
		one.balance()
		one.release([]feeds.Mark{{Shard: 1}})
		if two.balance(); !slices.Equal(two.share.Shards, []int{1}) {
			t.Fatalf("the second member holds %v", two.share.Shards)
		}
		one.balance()
		h.exec(`INSERT INTO @.messages (type, key) SELECT DISTINCT ON (s) 'shard ' || s, 'k' || i
			FROM generate_series(1, 50) i, @.shard_of('k' || i, 2) s`)
		expectTypes(t, "its own", one.readAll(), "shard 0")
		one.settle()
		expectTypes(t, "its own", one.readAll())
		two.leave()
		if one.balance(); len(one.share.Shards) != 2 {
			t.Fatalf("the first member holds %v", one.share.Shards)
		}
		expectTypes(t, "what the other has left", one.readAll(), "shard 1")
	})
}
