package redis_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis"
)

// sendMany sends numbered messages of one key.
func sendMany(t *testing.T, name string, from, to int) {
	t.Helper()
	var msgs []postrider.Message
	for n := from; n < to; n++ {
		msgs = append(msgs, event(name, "k", strconv.Itoa(n)))
	}
	send(t, msgs...)
}

// payloads receives count messages.
func payloads(t *testing.T, handled <-chan postrider.Message, count int) (got []string) {
	t.Helper()
	for range count {
		got = append(got, string(receive(t, handled).Payload))
	}
	return got
}

func numbers(from, to int) (want []string) {
	for n := from; n < to; n++ {
		want = append(want, strconv.Itoa(n))
	}
	return want
}

// TestOrderedHandsOver stops the receiving process with messages that it has not started: the
// standby process must continue at once, in order, and not before.
func TestOrderedHandsOver(t *testing.T) {
	t.Parallel()
	name := stream(t, connect(t))
	cfg := redis.Config{Name: name, Ordered: true, Lease: 20 * time.Second}
	entered, release := make(chan struct{}), make(chan struct{})
	first, stopFirst := consume(t, cfg, func(_ context.Context, m postrider.Message) error {
		if string(m.Payload) == "5" {
			close(entered)
			<-release
		}
		return nil
	})
	sendMany(t, name, 0, 20)
	<-entered
	var early atomic.Bool
	var released atomic.Bool
	second, _ := consume(t, cfg, func(context.Context, postrider.Message) error {
		early.Store(early.Load() || !released.Load())
		return nil
	})
	stopped := make(chan struct{})
	go func() { defer close(stopped); stopFirst() }()
	time.Sleep(700 * time.Millisecond) // the second process has looked at the lease
	released.Store(true)
	close(release)
	<-stopped
	begin := time.Now()
	got := append(payloads(t, first, 6), payloads(t, second, 14)...)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the next process took %v", took)
	}
	if !slices.Equal(got, numbers(0, 20)) {
		t.Errorf("got %v", got)
	}
	if early.Load() {
		t.Error("the second process handled a message while the first was at work")
	}
}

// TestOrderedTakesAllThatIsPending starts with entries pending for others, however short their idle
// time, before new ones.
func TestOrderedTakesAllThatIsPending(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	sendMany(t, name, 0, 2500) // more than a page
	if err := c.XGroupCreate(t.Context(), name, "postrider", "0").Err(); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"a", "b", "a"} {
		args := &client.XReadGroupArgs{Group: "postrider", Consumer: member, Streams: []string{name, ">"}, Count: 700}
		if err := c.XReadGroup(t.Context(), args).Err(); err != nil {
			t.Fatal(err)
		}
	}
	handled, _ := consume(t, redis.Config{Name: name, Ordered: true}, nil)
	if got := payloads(t, handled, 2500); !slices.Equal(got, numbers(0, 2500)) {
		t.Errorf("not in order: %v", got)
	}
}

// TestOrderedIsFenced takes the lease away without the receiving process noticing: it must read
// nothing more, although it has not yet tried to renew the lease.
func TestOrderedIsFenced(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	key := name + ":postrider:lease"
	remove(t, c, key)
	handled, _ := consume(t, redis.Config{Name: name, Ordered: true, Lease: time.Minute, Member: "me"}, nil)
	sendMany(t, name, 0, 3)
	payloads(t, handled, 3)
	if owner := c.Get(t.Context(), key).Val(); owner[:3] != "me/" {
		t.Errorf("the owner is %q", owner)
	}
	if err := c.Set(t.Context(), key, "another", time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	sendMany(t, name, 3, 6)
	time.Sleep(300 * time.Millisecond)
	pending, err := c.XPending(t.Context(), name, "postrider").Result()
	if err != nil || pending.Count != 0 || len(handled) != 0 {
		t.Errorf("%+v are pending, %d were handled: %v", pending, len(handled), err)
	}
	if got := payloads(t, handled, 3); !slices.Equal(got, numbers(3, 6)) { // when the other owner's lease is over
		t.Errorf("got %v", got)
	}
}

func TestOrderedOptions(t *testing.T) {
	t.Parallel()
	_, err := redis.NewConsumer(redis.Config{URL: "redis://localhost", Name: "s", Ordered: true, Lease: time.Millisecond})
	if err == nil {
		t.Error("a lease of 1 ms is accepted")
	}
}
