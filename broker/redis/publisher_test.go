package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/internal/port"
)

func open(t *testing.T, cfg redis.Config) *redis.Publisher {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = need.Env(t, "POSTRIDER_TEST_REDIS", "redis")
	}
	p := publisher(t, cfg)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func event(stream, key, payload string) postrider.Message {
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: key}, []byte(payload))
	m.Topic = stream
	return m
}

func expect(t *testing.T, errs []error, want ...postrider.Scope) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("got %v, want one error a message", errs)
	}
	for i, scope := range want {
		if (scope == confirmed) != (errs[i] == nil) || errs[i] != nil && postrider.ScopeOf(errs[i]) != scope {
			t.Errorf("message %d: got %v (%v), want scope %v", i, errs[i], postrider.ScopeOf(errs[i]), scope)
		}
	}
}

const confirmed postrider.Scope = -1

// Consumers in other languages rely on this layout.
func TestEntry(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	m := event(name, "42", "{}")
	m.Headers = map[string]string{"traceparent": "00-1", "data": "mine", "h:x": "y"}
	for _, format := range []codec.Format{codec.CloudEvents, codec.Raw} {
		if errs := open(t, redis.Config{Format: format}).Publish(t.Context(), []postrider.Message{m}); errs != nil {
			t.Fatal(errs)
		}
	}
	entries, err := c.XRange(t.Context(), name, "-", "+").Result()
	if err != nil || len(entries) != 2 {
		t.Fatalf("got %v, %v", entries, err)
	}
	common := map[string]any{"traceparent": "00-1", "h:data": "mine", "h:h:x": "y", "key": "order/42", "data": "{}"}
	for i, own := range []map[string]any{
		{"ce-id": m.ID.String(), "ce-type": "order.placed", "ce-subject": "42", "ce-aggregatetype": "order", "ce-specversion": "1.0", "ce-source": "postrider", "content-type": m.ContentType},
		{"message-id": m.ID.String(), "content-type": nil},
	} {
		for _, fields := range []map[string]any{common, own} {
			for field, want := range fields {
				if got := entries[i].Values[field]; got != want {
					t.Errorf("field %s: got %v, want %v", field, got, want)
				}
			}
		}
		if ids := strings.Count(fmt.Sprint(entries[i].Values), m.ID.String()); ids != 1 {
			t.Errorf("the ID is there %d times, want once: %v", ids, entries[i].Values)
		}
	}
}

// A user without write access to one stream is refused there and nowhere else.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	c := connect(t)
	allowed, denied := stream(t, c), stream(t, c)
	user, password := "user"+rand.Text(), rand.Text()
	if err := c.Do(t.Context(), "acl", "setuser", user, "on", ">"+password, "~"+strings.ReplaceAll(allowed, " ", "?"), "+xadd", "+multi", "+exec").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connect(t).Do(t.Context(), "acl", "deluser", user) })
	u, err := url.Parse(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	p := open(t, redis.Config{URL: u.String()})
	errs := p.Publish(t.Context(), []postrider.Message{
		event(allowed, "a", "0"), event(denied, "b", "1"), event(allowed, "b", "2"), event(allowed, "c", "3"), event(denied, "d", "4"),
	})
	expect(t, errs, confirmed, postrider.ScopeName, postrider.ScopeDestination, confirmed, postrider.ScopeName)
	if n := c.XLen(t.Context(), allowed).Val(); n != 2 {
		t.Errorf("the stream has %d entries, want 2", n)
	}

	u.User = url.UserPassword(user, "wrong")
	errs = open(t, redis.Config{URL: u.String()}).Publish(t.Context(), []postrider.Message{event(allowed, "a", "0")})
	expect(t, errs, postrider.ScopeDestination)
	if strings.Contains(fmt.Sprint(errs), password) {
		t.Errorf("the password is in %v", errs)
	}
}

func TestMemoryIsFull(t *testing.T) {
	need.Own(t, "redis@crash")
	c := connect(t)
	name := stream(t, c)
	p := open(t, redis.Config{})
	msgs := []postrider.Message{event(name, "a", "0"), event(name, "b", "1")}
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	errs := p.Publish(t.Context(), msgs)
	if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	expect(t, errs, postrider.ScopeDestination, postrider.ScopeDestination)
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Error(errs)
	}
	if n := c.XLen(t.Context(), name).Val(); n != 2 {
		t.Errorf("the stream has %d entries, want 2", n)
	}
}

// TestTooFewReplicas waits for a replica that does not exist: nothing may be stored, however often
// it is retried.
func TestTooFewReplicas(t *testing.T) {
	t.Parallel()
	c := connect(t)
	p := open(t, redis.Config{WaitReplicas: 1, WaitTimeout: 1e6})
	name := stream(t, c)
	for range 3 {
		expect(t, p.Publish(t.Context(), []postrider.Message{event(name, "a", "0")}), postrider.ScopeDestination)
	}
	if n := c.XLen(t.Context(), name).Val(); n > 0 {
		t.Errorf("%d entries were stored that no replica can have", n)
	}
	in, err := p.Inspect(t.Context(), nil)
	if err != nil || !strings.Contains(fmt.Sprint(in.Warnings), "wait for 1 replicas and there are 0") {
		t.Errorf("got %v, %v", in.Warnings, err)
	}
}

// TestReplicaGoes removes the only replica: messages in flight must not be confirmed, and later
// ones must not be stored.
func TestReplicaGoes(t *testing.T) {
	t.Parallel()
	primary := startServer(t)
	host, number, _ := strings.Cut(primary, ":")
	replica := startServer(t, "--replicaof", host, number)
	p := open(t, redis.Config{URL: "redis://" + primary, WaitReplicas: 1, Connections: 1})
	publish := func() error { return errors.Join(p.Publish(t.Context(), []postrider.Message{event("s", "a", "0")})...) }
	stored := 0
	for deadline := time.Now().Add(30 * time.Second); stored == 0; {
		if err := publish(); err == nil {
			stored++
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if err := client.NewClient(&client.Options{Addr: replica}).Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	if err := publish(); postrider.ScopeOf(err) != postrider.ScopeUnknown || !strings.Contains(fmt.Sprint(err), "only 0 of 1 replicas") {
		t.Errorf("got %v, want that no replica has it", err)
	}
	for range 3 {
		if err := publish(); postrider.ScopeOf(err) != postrider.ScopeDestination {
			t.Errorf("got %v, want that the server cannot take it", err)
		}
	}
	if n := client.NewClient(&client.Options{Addr: primary}).XLen(t.Context(), "s").Val(); n != 2 {
		t.Errorf("%d entries were stored, want the confirmed one and the one that met the loss", n)
	}
}

// startServer starts a server for the test and returns its address.
func startServer(t *testing.T, args ...string) string {
	t.Helper()
	address := port.For(t)
	_, number, _ := strings.Cut(address, ":")
	args = append([]string{"--port", number, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir(), "--repl-diskless-sync-delay", "0"}, args...)
	cmd := exec.Command(need.Program(t, "redis-server", "redis"), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return address
}

func TestInspect(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	if err := c.Set(t.Context(), name, "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p := open(t, redis.Config{})
	in, err := p.Inspect(t.Context(), []string{name, "absent " + name})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(in.Confirmed, "append-only file, which is flushed to the disk once a second") {
		t.Errorf("got %q", in.Confirmed)
	}
	for _, want := range []string{"two seconds of confirmed messages", "holds a string"} {
		if !strings.Contains(fmt.Sprint(in.Warnings), want) {
			t.Errorf("nobody is warned of %q: %v", want, in.Warnings)
		}
	}
	if len(in.Warnings) != 2 || len(in.Settings) == 0 {
		t.Errorf("got %+v", in)
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := redis.NewPublisher(redis.Config{
		URL: "amqp://user:secret@host", Format: "xml", Connections: -1, Timeout: 1, WaitReplicas: 1, WaitTimeout: 2,
	})
	for _, want := range []string{"url", "format", "connections", "wait_timeout and timeout"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
	if strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("the password is in %v", err)
	}
	for _, url := range []string{"", "redis://h/x", "redis://h?skip_verify=true", "redis://u:secret@h:notaport", "redis://u:secret@%zz"} {
		if _, err := redis.NewPublisher(redis.Config{URL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", url, err)
		}
	}
	_, err = redis.NewConsumer(redis.Config{URL: "redis://h", ClaimIdle: 1, InFlight: -1})
	for _, want := range []string{"name", "claim_idle", "in_flight"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not mention %s", err, want)
		}
	}
}

// Cancelling the context ends a call at once, even if the server is silent.
func TestCancel(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := flaky.Listen(t, u.Host)
	c := connect(t)
	msgs := []postrider.Message{event(stream(t, c), "a", "0")}
	p := open(t, redis.Config{URL: "redis://" + proxy.Addr(), Connections: 1})
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Fatal(errs)
	}
	proxy.SwallowAnswers()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	expect(t, p.Publish(ctx, msgs), postrider.ScopeUnknown)
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("Publish took %v after it was cancelled", took)
	}
	expect(t, p.Publish(ctx, msgs), postrider.ScopeDestination)
}
