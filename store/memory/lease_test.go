package memory_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// The suite cannot know the exact moment at which a lease expires; with virtual time these tests
// do.

const lease = 10 * time.Second

func open(t *testing.T, s *memory.DB, feed string) feeds.Feed {
	t.Helper()
	f, err := s.Open(t.Context(), feed, feeds.Member{Lease: lease, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func balance(t *testing.T, f feeds.Feed) feeds.Share {
	t.Helper()
	share, err := f.Balance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return share
}

func settle(t *testing.T, f feeds.Feed, marks ...feeds.Mark) (lost []int) {
	t.Helper()
	lost, err := f.Settle(t.Context(), marks)
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

// read returns the payloads and the last batch of shard 0.
func read(t *testing.T, f feeds.Feed, limit int) (payloads []string, last *feeds.Batch) {
	t.Helper()
	batches, err := f.Read(t.Context(), []feeds.Demand{{Shard: 0, Limit: limit}})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		for _, m := range b.Messages {
			payloads = append(payloads, string(m.Payload))
		}
		last = &b
	}
	return payloads, last
}

func deadLetters(s string) []postrider.Message {
	var msgs []postrider.Message
	for _, r := range s {
		msgs = append(msgs, postrider.Event("letter", postrider.Aggregate{Type: "alphabet", ID: "latin"}, []byte(string(r))))
	}
	return msgs
}

func write(t *testing.T, s *memory.DB, msgs ...postrider.Message) {
	t.Helper()
	if err := memory.Outbox[struct{}](s).Enqueue(t.Context(), struct{}{}, msgs...); err != nil {
		t.Fatal(err)
	}
}

func TestLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Config{Shards: 1})
		a, b := open(t, s, "feed"), open(t, s, "feed")
		balance(t, a)
		time.Sleep(lease - 1)
		if share := balance(t, b); len(share.Shards) != 0 || share.Members != 2 {
			t.Errorf("just before the end: %+v, want no shard and two members", share)
		}
		time.Sleep(time.Nanosecond)
		if share := balance(t, b); len(share.Shards) != 1 || share.Members != 1 {
			t.Errorf("at the end: %+v, want the shard and one member", share)
		}
	})
}

func TestLateHolderGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Config{Shards: 1})
		write(t, s, deadLetters("abcd")...)
		a, b := open(t, s, "feed"), open(t, s, "feed")
		balance(t, a)
		if got, _ := read(t, a, 2); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("got %q", got)
		}
		time.Sleep(2 * lease)
		if lost := settle(t, a, feeds.Mark{Shard: 0}); lost != nil {
			t.Errorf("lost %v, though nobody took the shard", lost)
		}
		if share := balance(t, b); len(share.Shards) != 0 {
			t.Errorf("the shard was taken right after it was renewed")
		}
		time.Sleep(2 * lease)
		if share := balance(t, a); len(share.Shards) != 1 {
			t.Errorf("the late owner does not get its shard back: %+v", share)
		}
		if got, _ := read(t, a, 9); !slices.Equal(got, []string{"c", "d"}) {
			t.Errorf("the late owner goes on with %q, want c and d", got)
		}
	})
}

// TestTakenAndReleased checks that a member stays fenced after the member that took the shard has
// released it again.
func TestTakenAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Config{Shards: 1})
		write(t, s, deadLetters("ab")...)
		older, a := open(t, s, "feed"), open(t, s, "feed")
		balance(t, a)
		_, batch := read(t, a, 9)
		time.Sleep(lease)
		balance(t, older) // takes the shard, because its quota is one
		if err := older.Release(t.Context(), []feeds.Mark{{Shard: 0}}); err != nil {
			t.Fatal(err)
		}
		if share := balance(t, a); len(share.Shards) != 0 || share.Quota != 0 {
			t.Fatalf("got %+v, want nothing", share)
		}
		if lost := settle(t, a, feeds.Mark{Shard: 0, Batch: batch, Done: 2}); !slices.Equal(lost, []int{0}) {
			t.Errorf("lost %v, want the shard", lost)
		}
		if got, _ := read(t, a, 9); got != nil {
			t.Errorf("read %q from a shard that is not held", got)
		}
		balance(t, older)
		if got, _ := read(t, older, 9); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got %q, want all again", got)
		}
	})
}

// TestLateOwnerBeyondQuota: a member calls Balance after its lease has expired, and its quota no
// longer includes the shard. When it gets the shard again, it must read what it had not settled
// again.
func TestLateOwnerBeyondQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Config{Shards: 1})
		write(t, s, deadLetters("ab")...)
		older, a := open(t, s, "feed"), open(t, s, "feed")
		balance(t, a)
		read(t, a, 9)
		time.Sleep(lease / 2)
		balance(t, older) // counts from now on, and has nothing to take
		time.Sleep(lease / 2)
		if share := balance(t, a); len(share.Shards) != 0 {
			t.Fatalf("got %+v, want nothing", share)
		}
		if err := older.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if share := balance(t, a); len(share.Shards) != 1 {
			t.Fatalf("got %+v, want the shard", share)
		}
		if got, _ := read(t, a, 9); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got %q, want all again", got)
		}
	})
}

func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.Open(memory.Config{})
		var names []feeds.Feed
		for range 10 {
			names = append(names, open(t, s, "feed"))
			balance(t, names[len(names)-1])
		}
		check := func(want ...int) {
			t.Helper()
			for i, quota := range want {
				if share := balance(t, names[i]); share.Quota != quota || share.Members != len(want) {
					t.Errorf("member %d of %d: got %+v, want a quota of %d", i, len(want), share, quota)
				}
			}
		}
		check(1, 1, 1, 1, 1, 1, 1, 1, 0, 0)
		for len(names) > 3 {
			_ = names[3].Close(t.Context())
			names = slices.Delete(names, 3, 4)
		}
		check(3, 3, 2)
		time.Sleep(lease)
		if share := balance(t, names[2]); share.Quota != 8 || share.Members != 1 {
			t.Errorf("alone: got %+v, want a quota of 8", share)
		}
	})
}
