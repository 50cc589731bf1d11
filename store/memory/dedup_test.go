package memory_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/memory"
)

func keyed(key string) postrider.Message {
	m := deadLetters("a")[0]
	m.DedupKey = key
	return m
}

// TestDedupWindow checks the exact moment at which a key becomes free, also for outboxes that see
// no commit.
func TestDedupWindow(t *testing.T) {
	for name, c := range map[string]struct {
		config memory.Config
		window time.Duration
	}{
		"Default": {memory.Config{}, 7 * 24 * time.Hour},
		"Hour":    {memory.Config{DedupWindow: time.Hour}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.Open(c.config)
				outbox := memory.Outbox[struct{}](s)
				offer := func(want []int) {
					t.Helper()
					if err := s.Maintain(t.Context()); err != nil {
						t.Fatal(err)
					}
					repeats, err := outbox.Offer(t.Context(), struct{}{}, keyed("k"))
					if err != nil || !slices.Equal(repeats, want) {
						t.Errorf("left out %v, and %v; want %v", repeats, err, want)
					}
				}
				offer(nil)
				time.Sleep(c.window - 1)
				offer([]int{0})
				time.Sleep(time.Nanosecond)
				offer(nil)
			})
		})
	}
}

// TestDedupAcrossTransactions checks keys of open transactions.
func TestDedupAcrossTransactions(t *testing.T) {
	s := memory.Open(memory.Config{})
	a, b := s.Begin(), s.Begin()
	offer := func(tx *memory.Tx, want []int) {
		t.Helper()
		repeats, err := s.Offer(t.Context(), tx, keyed("k"))
		if err != nil || !slices.Equal(repeats, want) {
			t.Errorf("left out %v, and %v; want %v", repeats, err, want)
		}
	}
	offer(a, nil)
	offer(b, []int{0})
	if err := a.Rollback(); err != nil {
		t.Fatal(err)
	}
	offer(b, nil)
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	_ = a.Rollback() // too late to release a key
	offer(s.Begin(), []int{0})
}

// TestDedupLateRollback checks that a rollback does not release a key that another transaction has
// claimed since.
func TestDedupLateRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Config{DedupWindow: time.Hour})
		late := s.Begin()
		if err := s.Enqueue(t.Context(), late, keyed("k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		write(t, s, keyed("k"))
		_ = late.Rollback()
		if repeats, err := s.Offer(t.Context(), s.Begin(), keyed("k")); err != nil || len(repeats) != 1 {
			t.Errorf("left out %v, and %v; want the message", repeats, err)
		}
	})
}
