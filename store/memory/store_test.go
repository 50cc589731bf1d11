package memory_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

func TestMaintain(t *testing.T) {
	s := memory.Open(memory.Config{Shards: 1})
	maintain := func() {
		t.Helper()
		if err := s.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s, deadLetters("abcd")...)
	maintain() // without a feed nothing counts as delivered

	fast, slow := open(t, s, "fast"), open(t, s, "slow")
	balance(t, fast)
	balance(t, slow)
	_, batch := read(t, fast, 9)
	settle(t, fast, feeds.Mark{Shard: 0, Batch: batch, Done: 4})
	_, batch = read(t, slow, 3)
	settle(t, slow, feeds.Mark{Shard: 0, Batch: batch, Done: 2})
	maintain()

	if got, _ := read(t, slow, 9); !slices.Equal(got, []string{"d"}) {
		t.Errorf("the slow feed goes on with %q, want d", got)
	}
	late := open(t, s, "late")
	balance(t, late)
	if got, _ := read(t, late, 9); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("a new feed starts with %q, want c and d", got)
	}
	write(t, s, deadLetters("e")...)
	if got, _ := read(t, fast, 9); !slices.Equal(got, []string{"e"}) {
		t.Errorf("the fast feed goes on with %q, want e", got)
	}
}

// TestMaintainWithDeferred checks that the log is trimmed even if it has deferred messages, which
// stay.
func TestMaintainWithDeferred(t *testing.T) {
	s := memory.Open(memory.Config{Shards: 1})
	f := open(t, s, "feed")
	balance(t, f)
	write(t, s, deadLetters("ab")...)
	_, batch := read(t, f, 9)
	deferral := []feeds.Deferral{{Batch: batch, Status: feeds.StatusDead, Blocking: true}}
	if err := f.Defer(t.Context(), deferral); err != nil {
		t.Fatal(err)
	}
	settle(t, f, feeds.Mark{Shard: 0, Batch: batch, Done: 2})
	if err := s.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := open(t, s, "late")
	balance(t, late)
	if got, _ := read(t, late, 9); got != nil {
		t.Errorf("a new feed starts with %q, want nothing", got)
	}
	if err := f.Defer(t.Context(), deferral); err == nil {
		t.Error("a message was deferred that the log does not hold")
	}
	kept, err := s.List(t.Context(), admin.Filter{}, nil, 9)
	if err != nil || len(kept) != 1 || string(kept[0].Payload) != "a" {
		t.Errorf("got %+v, and %v; want what was deferred", kept, err)
	}
	if n, err := s.Rewind(t.Context(), admin.By{}, "feed", admin.Point{}); n != 0 || err != nil {
		t.Errorf("rewound by %d messages, and %v; there are none", n, err)
	}
}

func TestTxDone(t *testing.T) {
	s := memory.Open(memory.Config{})
	for name, end := range map[string]func(*memory.Tx) error{
		"Commit":   (*memory.Tx).Commit,
		"Rollback": (*memory.Tx).Rollback,
	} {
		tx := s.Begin()
		if err := end(tx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for what, err := range map[string]error{
			"Enqueue":  s.Enqueue(t.Context(), tx, deadLetters("a")...),
			"Commit":   tx.Commit(),
			"Rollback": tx.Rollback(),
		} {
			if !errors.Is(err, memory.ErrTxDone) {
				t.Errorf("%s after %s: %v, want ErrTxDone", what, name, err)
			}
		}
	}
	if err := s.Enqueue(t.Context(), memory.Open(memory.Config{}).Begin(), deadLetters("a")...); err == nil {
		t.Error("a transaction of another store was accepted")
	}
}

// TestOutbox checks that the outbox ignores a foreign transaction, but not one of the store.
func TestOutbox(t *testing.T) {
	s := memory.Open(memory.Config{Shards: 1})
	f := open(t, s, "feed")
	balance(t, f)

	write(t, s, deadLetters("a")...)
	if got, _ := read(t, f, 9); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, want a", got)
	}
	tx := s.Begin()
	if err := memory.Outbox[*memory.Tx](s).Enqueue(t.Context(), tx, deadLetters("b")...); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(t, f, 9); got != nil {
		t.Errorf("got %q before the commit", got)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(t, f, 9); !slices.Equal(got, []string{"b"}) {
		t.Errorf("got %q, want b", got)
	}
	err := memory.Outbox[any](s).Enqueue(t.Context(), nil, postrider.Message{})
	if !errors.Is(err, postrider.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

func TestMisuse(t *testing.T) {
	s := memory.Open(memory.Config{Shards: 1})
	if _, err := s.Open(t.Context(), "feed", feeds.Member{}); err == nil {
		t.Error("a member without lease was accepted")
	}
	f := open(t, s, "feed")
	balance(t, f)
	write(t, s, deadLetters("a")...)
	_, batch := read(t, f, 9)
	if lost := settle(t, f, feeds.Mark{Shard: -1}, feeds.Mark{Shard: 1}); !slices.Equal(lost, []int{-1, 1}) {
		t.Errorf("lost %v, want the shards that do not exist", lost)
	}
	if _, err := f.Settle(t.Context(), []feeds.Mark{{Shard: 1, Batch: &feeds.Batch{Shard: 2}}}); err == nil {
		t.Error("a batch of one shard settled another")
	}
	for name, d := range map[string]feeds.Deferral{
		"no batch":       {Status: feeds.StatusDead},
		"no cursor":      {Batch: &feeds.Batch{}, Status: feeds.StatusDead},
		"no such status": {Batch: batch, Status: feeds.StatusParked},
		"no such place":  {Batch: batch, Index: 1, Status: feeds.StatusDead},
	} {
		if err := f.Defer(t.Context(), []feeds.Deferral{d}); err == nil {
			t.Errorf("Defer: %s: no error", name)
		}
	}
	late := open(t, s, "feed")
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.RemoveFeed(t.Context(), admin.By{}, "feed"); err != nil {
		t.Error(err)
	}
	if _, err := late.Balance(t.Context()); err == nil {
		t.Error("a feed works that was removed")
	}
	if _, err := f.Balance(t.Context()); err == nil {
		t.Error("a closed feed works")
	}
}
