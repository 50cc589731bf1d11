package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis"
)

// TestTrim checks that exactly the entries that all groups have acknowledged are removed: none that
// the slowest group has not read or not acknowledged.
func TestTrim(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	const all, slow = 25_000, 10_000
	for from := 0; from < all; from += 1000 {
		pipe := c.Pipeline()
		for i := from; i < from+1000; i++ {
			pipe.XAdd(t.Context(), &client.XAddArgs{Stream: name, Values: []string{"data", fmt.Sprint(i)}})
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The slow group has read some entries and acknowledged all of those but one.
	if err := c.XGroupCreate(t.Context(), name, "slow", "0").Err(); err != nil {
		t.Fatal(err)
	}
	read, err := c.XReadGroup(t.Context(), &client.XReadGroupArgs{Group: "slow", Consumer: "me", Streams: []string{name, ">"}, Count: slow}).Result()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, entry := range read[0].Messages {
		ids = append(ids, entry.ID)
	}
	if err := c.XAck(t.Context(), name, "slow", append(ids[:500:500], ids[501:]...)...).Err(); err != nil {
		t.Fatal(err)
	}
	con, err := redis.NewConsumer(redis.Config{URL: "redis://" + c.Options().Addr, Name: name, Group: "fast", InFlight: 1000, Trim: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- con.Consume(ctx, func(context.Context, postrider.Message) error { return nil }) }()
	// The server removes blocks of a hundred entries.
	await := func(least, most int64) {
		t.Helper()
		var n int64
		for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if n = c.XLen(t.Context(), name).Val(); n < least {
				t.Fatalf("%d entries are left, want at least %d: some are gone that are needed", n, least)
			}
			if n <= most {
				return
			}
		}
		t.Fatalf("%d entries are left, want at most %d", n, most)
	}
	await(all-500, all-400)
	if err := c.XAck(t.Context(), name, "slow", ids[500]).Err(); err != nil {
		t.Fatal(err)
	}
	await(all-slow, all-slow+100)
	if err := c.XGroupDestroy(t.Context(), name, "slow").Err(); err != nil {
		t.Fatal(err)
	}
	await(0, 100)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
