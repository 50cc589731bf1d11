package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
)

const waitLimit = 30 * time.Second

// consume starts a consumer and returns a channel of what it has handled, and a function that stops
// it.
func consume(t *testing.T, cfg redis.Config, handle postrider.Handler) (<-chan postrider.Message, func()) {
	t.Helper()
	cfg.URL = need.Env(t, "POSTRIDER_TEST_REDIS", "redis")
	c, err := redis.NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan postrider.Message, 100)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		err := c.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
			if handle != nil {
				if err := handle(ctx, m); err != nil {
					return err
				}
			}
			handled <- m
			return nil
		})
		if err != nil {
			t.Errorf("Consume: %v", err)
		}
	})
	stop := sync.OnceFunc(func() {
		cancel()
		run.Wait()
		_ = c.Close()
	})
	t.Cleanup(stop)
	return handled, stop
}

func receive(t *testing.T, handled <-chan postrider.Message) postrider.Message {
	t.Helper()
	select {
	case m := <-handled:
		return m
	case <-time.After(waitLimit):
		t.Fatal("no message has come")
		panic("unreachable")
	}
}

func send(t *testing.T, msgs ...postrider.Message) {
	t.Helper()
	if errs := open(t, redis.Config{}).Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
}

func TestTakesOverFromTheDead(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	m := event(name, "a", "0")
	send(t, m)
	if err := c.XGroupCreate(t.Context(), name, "group", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.XReadGroup(t.Context(), &client.XReadGroupArgs{Group: "group", Consumer: "dead", Streams: []string{name, ">"}}).Err(); err != nil {
		t.Fatal(err)
	}
	handled, _ := consume(t, redis.Config{Name: name, Group: "group", ClaimIdle: time.Second}, nil)
	if got := receive(t, handled); got.ID != m.ID {
		t.Errorf("got %v", got)
	}
}

func TestNobodyTakesOverFromTheLiving(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	send(t, event(name, "a", "0"))
	var calls atomic.Int32
	entered := make(chan struct{})
	release := make(chan struct{})
	slow := func(context.Context, postrider.Message) error {
		if calls.Add(1) == 1 {
			close(entered)
		}
		<-release
		return nil
	}
	handled, _ := consume(t, redis.Config{Name: name, ClaimIdle: time.Second}, slow)
	<-entered
	other, _ := consume(t, redis.Config{Name: name, ClaimIdle: time.Second}, slow)
	select {
	case <-other:
	case <-time.After(2500 * time.Millisecond): // long enough for a takeover, if it were silent
	}
	close(release)
	receive(t, handled)
	if n := calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times, want once", n)
	}
}

// A member that works does not block another one, which logs once that there is no order between
// the two.
func TestLivingMembersDoNotStarve(t *testing.T) {
	t.Parallel()
	name := stream(t, connect(t))
	send(t, event(name, "stuck", "0"))
	entered, release := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	first, _ := consume(t, redis.Config{Name: name, ClaimIdle: time.Second, InFlight: 1}, func(context.Context, postrider.Message) error {
		close(entered)
		<-release
		return nil
	})
	t.Cleanup(letGo)
	<-entered
	m := event(name, "other", "1")
	send(t, m)
	said := new(logged)
	log := slog.New(slog.NewTextHandler(said, nil))
	second, _ := consume(t, redis.Config{Name: name, ClaimIdle: time.Second, Logger: log}, nil)
	if got := receive(t, second); got.ID != m.ID {
		t.Errorf("got %v", got)
	}
	letGo()
	receive(t, first)
	if n := said.count("another member of the group is at work"); n != 1 {
		t.Errorf("the second member has said %d times that it is not alone", n)
	}
}

// When a member takes over more messages than it handles at a time, from several dead members with
// interleaved entries, they are handled in order, and before new ones.
func TestTakesOverInOrder(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	if err := c.XGroupCreateMkStream(t.Context(), name, "postrider", "0").Err(); err != nil {
		t.Fatal(err)
	}
	const pending, all = 2500, 2600 // more than one page
	var msgs []postrider.Message
	for n := range all {
		msgs = append(msgs, event(name, "k", strconv.Itoa(n)))
	}
	send(t, msgs...)
	for n := 0; n < pending; n += 50 {
		err := c.XReadGroup(t.Context(), &client.XReadGroupArgs{
			Group: "postrider", Consumer: fmt.Sprint("dead ", n/50%3), Streams: []string{name, ">"}, Count: 50,
		}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	handled, _ := consume(t, redis.Config{Name: name, ClaimIdle: time.Second, InFlight: 10}, nil)
	for n := range all {
		if m := receive(t, handled); string(m.Payload) != strconv.Itoa(n) {
			t.Fatalf("message %d: got %s", n, m.Payload)
		}
	}
}

// logged collects a consumer's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// Unfinished entries of a stopped member are taken over at once; a member without pending entries
// leaves the group.
func TestLeaves(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	m := event(name, "a", "0")
	send(t, m)
	entered := make(chan struct{}, 100)
	_, stop := consume(t, redis.Config{Name: name, Member: "first"}, func(context.Context, postrider.Message) error {
		entered <- struct{}{}
		return context.Canceled
	})
	<-entered
	stop()
	handled, stop := consume(t, redis.Config{Name: name, Member: "second"}, nil)
	if got := receive(t, handled); got.ID != m.ID {
		t.Errorf("got %v", got)
	}
	stop()
	members, err := c.XInfoConsumers(t.Context(), name, "postrider").Result()
	if err != nil || len(members) != 1 || members[0].Name != "first" || members[0].Pending != 0 {
		t.Errorf("got %v, %v", members, err)
	}
}

func TestStreamIsDeleted(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	send(t, event(name, "a", "0"))
	handled, _ := consume(t, redis.Config{Name: name}, nil)
	receive(t, handled)
	if err := c.Del(t.Context(), name).Err(); err != nil {
		t.Fatal(err)
	}
	m := event(name, "a", "1")
	send(t, m)
	if got := receive(t, handled); got.ID != m.ID {
		t.Errorf("got %v", got)
	}
}

// An entry that was deleted while pending cannot be handled; it must not block the others.
func TestGhost(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	send(t, event(name, "a", "0"))
	if err := c.XGroupCreate(t.Context(), name, "postrider", "0").Err(); err != nil {
		t.Fatal(err)
	}
	read, err := c.XReadGroup(t.Context(), &client.XReadGroupArgs{Group: "postrider", Consumer: "me", Streams: []string{name, ">"}}).Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.XDel(t.Context(), name, read[0].Messages[0].ID).Err(); err != nil {
		t.Fatal(err)
	}
	m := event(name, "a", "1")
	send(t, m)
	handled, stop := consume(t, redis.Config{Name: name, Member: "me"}, nil)
	if got := receive(t, handled); got.ID != m.ID {
		t.Errorf("got %v", got)
	}
	stop()
	if pending, err := c.XPending(t.Context(), name, "postrider").Result(); err != nil || pending.Count != 0 {
		t.Errorf("got %v, %v", pending, err)
	}
}

func TestForeignEntries(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	for _, fields := range [][]string{
		{"ce-specversion", "1.0", "data", "no id"}, // claims to be a CloudEvent
		{"temperature", "21"},
	} {
		if err := c.XAdd(t.Context(), &client.XAddArgs{Stream: name, Values: fields}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	handled, _ := consume(t, redis.Config{Name: name, InFlight: 1}, nil)
	if m := receive(t, handled); string(m.Payload) != "no id" || m.Headers["ce-specversion"] != "1.0" {
		t.Errorf("got %+v", m)
	}
	if m := receive(t, handled); m.Headers["temperature"] != "21" || m.Topic != name {
		t.Errorf("got %+v", m)
	}
}

func TestNoStream(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	if err := c.Set(t.Context(), name, "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	con, err := redis.NewConsumer(redis.Config{URL: need.Env(t, "POSTRIDER_TEST_REDIS", "redis"), Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer con.Close()
	if err := con.Consume(t.Context(), func(context.Context, postrider.Message) error { return nil }); err == nil {
		t.Error("a key that holds text was subscribed to")
	}
}
