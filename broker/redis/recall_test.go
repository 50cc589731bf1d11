package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
)

func shopSender(ctx context.Context, term int64) context.Context {
	return broker.WithSender(ctx, broker.Sender{Name: "shop", Term: term})
}

func messagesFor(stream string, count int) []postrider.Message {
	msgs := make([]postrider.Message, count)
	for n := range msgs {
		msgs[n] = event(stream, fmt.Sprint(n%7), fmt.Sprint(n))
	}
	return msgs
}

// TestRecallOfDeleted checks that a stream of which entries were deleted can be recalled only if
// those are older than what is asked for.
func TestRecallOfDeleted(t *testing.T) {
	t.Parallel()
	c := connect(t)
	p := open(t, redis.Config{})
	name := stream(t, c)
	recall := func() error {
		return errors.Join(p.Recall(shopSender(t.Context(), 1), []string{name}, time.Now(), func(string) {})...)
	}
	do := func(args ...any) {
		t.Helper()
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour).UnixMilli()
	do("xadd", name, fmt.Sprint(long, "-1"), "data", "old")
	do("xadd", name, fmt.Sprint(long, "-2"), "data", "old")
	do("xtrim", name, "maxlen", 1)
	do("xdel", name, fmt.Sprint(long, "-2"))
	if err := recall(); err != nil {
		t.Errorf("after an hour without entries: %v", err)
	}
	do("xadd", name, fmt.Sprint(long, "-3"), "data", "old")
	do("xadd", name, "*", "data", "new")
	if err := recall(); err != nil {
		t.Errorf("old entries were deleted: %v", err)
	}
	do("xtrim", name, "maxlen", 1)
	if err := recall(); !errors.Is(err, broker.ErrCannotRecall) {
		t.Errorf("entries were trimmed up to a young one: %v", err)
	}
	do("del", name)
	do("xadd", name, "*", "data", "new")
	do("xadd", name, "*", "data", "newer")
	if err := recall(); err != nil {
		t.Errorf("nothing was deleted: %v", err)
	}
	last := c.XRevRangeN(t.Context(), name, "+", "-", 1).Val()[0].ID
	do("xdel", name, last)
	if err := recall(); !errors.Is(err, broker.ErrCannotRecall) || !strings.Contains(err.Error(), name) {
		t.Errorf("a young entry was deleted: %v", err)
	}
}

// TestSenderWithoutPermission checks that a user who may not use fences can publish, but not recall.
func TestSenderWithoutPermission(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name, user, password := stream(t, c), "user"+rand.Text(), rand.Text()
	if err := c.Do(t.Context(), "acl", "setuser", user, "on", ">"+password, "~"+strings.ReplaceAll(name, " ", "?"), "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Do(context.WithoutCancel(t.Context()), "acl", "deluser", user) })
	url := strings.Replace(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"), "//", "//"+user+":"+password+"@", 1)
	p := open(t, redis.Config{URL: url})
	for n := range 2 {
		if err := errors.Join(p.Publish(shopSender(t.Context(), 1), messagesFor(name, 3))...); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
	}
	if n := c.XLen(t.Context(), name).Val(); n != 6 {
		t.Errorf("%d entries, want 6", n)
	}
	err := errors.Join(p.Recall(shopSender(t.Context(), 2), []string{name}, time.Now(), func(string) {})...)
	if !errors.Is(err, broker.ErrCannotRecall) || !strings.Contains(err.Error(), "permission") {
		t.Errorf("got %v, want ErrCannotRecall and the permission", err)
	}
}

// TestRecallWithoutCommand checks that a user who lacks a command by which a stream is read can
// publish, and that nothing waits for ever for what it would report.
func TestRecallWithoutCommand(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, command := range []string{"time", "xrange", "xinfo"} {
		name, user, password := stream(t, c), "user"+rand.Text(), rand.Text()
		if err := c.Do(t.Context(), "acl", "setuser", user, "on", ">"+password, "~*", "+@all", "-"+command).Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Do(context.WithoutCancel(t.Context()), "acl", "deluser", user) })
		p := open(t, redis.Config{URL: strings.Replace(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"), "//", "//"+user+":"+password+"@", 1)})
		if err := errors.Join(p.Publish(shopSender(t.Context(), 1), messagesFor(name, 3))...); err != nil {
			t.Fatal(err)
		}
		err := errors.Join(p.Recall(shopSender(t.Context(), 2), []string{name}, time.Now(), func(string) {})...)
		if !errors.Is(err, broker.ErrCannotRecall) || !strings.Contains(err.Error(), "permission") {
			t.Errorf("without %s: got %v, want ErrCannotRecall and the permission", command, err)
		}
		removeFences(t, c, name)
	}
}

// TestFenceKeys checks that a fence has a name of its own for each sender and stream, is in the
// stream's slot, and expires.
func TestFenceKeys(t *testing.T) {
	t.Parallel()
	c := connect(t)
	p := open(t, redis.Config{})
	name := stream(t, c)
	for _, sender := range []string{"a", "b"} {
		ctx := broker.WithSender(t.Context(), broker.Sender{Name: sender, Term: 3})
		if err := errors.Join(p.Recall(ctx, []string{name, name + "/other"}, time.Now(), func(string) {})...); err != nil {
			t.Fatal(err)
		}
	}
	keys := c.Keys(t.Context(), name+"*:fence").Val()
	if len(keys) != 4 {
		t.Errorf("got %q, want one key for each sender and stream", keys)
	}
	removeFences(t, c, name)
	for _, key := range keys {
		if life := c.TTL(t.Context(), key).Val(); life < 24*time.Hour || life > 30*24*time.Hour {
			t.Errorf("%s expires in %v", key, life)
		}
	}
}

// TestFencedAfterOthers checks that a sender is fenced although others have used its connection since
// it last read its fence.
func TestFencedAfterOthers(t *testing.T) {
	t.Parallel()
	c := connect(t)
	p := open(t, redis.Config{Connections: 1})
	name := stream(t, c)
	term := int64(1)
	for what, between := range map[string]context.Context{
		"without a sender": context.Background(),
		"another sender":   broker.WithSender(context.Background(), broker.Sender{Name: "another", Term: 1}),
	} {
		for range 3 {
			term += 4
			for n, ctx := range []context.Context{shopSender(t.Context(), term), between} {
				if err := errors.Join(p.Publish(ctx, messagesFor(name, 3))...); err != nil {
					t.Fatalf("%s, call %d: %v", what, n, err)
				}
			}
			if err := errors.Join(open(t, redis.Config{}).Recall(shopSender(t.Context(), term+2), []string{name}, time.Now(), func(string) {})...); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(p.Publish(shopSender(t.Context(), term), messagesFor(name, 3))...); !errors.Is(err, broker.ErrFenced) {
				t.Errorf("%s: got %v, want ErrFenced", what, err)
			}
		}
	}
	removeFences(t, c, name)
}

// TestManySendersOnOneConnection checks that calls of different senders over one connection do not
// disturb each other.
func TestManySendersOnOneConnection(t *testing.T) {
	t.Parallel()
	c := connect(t)
	p := open(t, redis.Config{Connections: 1})
	name := stream(t, c)
	for n := range 30 {
		ctx := broker.WithSender(t.Context(), broker.Sender{Name: fmt.Sprint("sender ", n%3), Term: int64(n%3 + 1)})
		if n%4 == 0 {
			ctx = t.Context()
		}
		if err := errors.Join(p.Publish(ctx, messagesFor(name, 300))...); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		if n == 15 { // watched by the connection at the moment
			ctx := broker.WithSender(t.Context(), broker.Sender{Name: "sender 0", Term: 1})
			if err := errors.Join(p.Recall(ctx, []string{name}, time.Now(), func(string) {})...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := c.XLen(t.Context(), name).Val(); n != 30*300 {
		t.Errorf("%d entries, want %d", n, 30*300)
	}
	removeFences(t, c, name)
}

func removeFences(t *testing.T, c *client.Client, name string) {
	t.Helper()
	for _, key := range c.Keys(t.Context(), name+"*:fence").Val() {
		remove(t, c, key)
	}
}

// TestUnfencedInCluster publishes to a stream in whose slot no other key can be: it is not fenced, and
// cannot be recalled.
func TestUnfencedInCluster(t *testing.T) {
	t.Parallel()
	p := open(t, clusterConfig(t))
	name := "test} " + rand.Text()
	remove(t, connectToCluster(t), name)
	if err := errors.Join(p.Publish(shopSender(t.Context(), 1), messagesFor(name, 3))...); err != nil {
		t.Error(err)
	}
	err := errors.Join(p.Recall(shopSender(t.Context(), 2), []string{name}, time.Now(), func(string) {})...)
	if !errors.Is(err, broker.ErrCannotRecall) || !strings.Contains(err.Error(), "brace") {
		t.Errorf("got %v, want ErrCannotRecall and the brace", err)
	}
}
