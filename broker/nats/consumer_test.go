package nats_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

// process is a running consumer.
type process struct {
	handled chan postrider.Message
	stop    func()
	log     *logged
}

// logged collects a process's log.
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

func startProcess(t *testing.T, c nats.Config, handle postrider.Handler) *process {
	t.Helper()
	p := &process{handled: make(chan postrider.Message, 10_000), log: new(logged)}
	c.Logger = slog.New(slog.NewTextHandler(p.log, nil))
	con := consumer(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- con.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
			if err := handle(ctx, m); err != nil {
				return err
			}
			p.handled <- m
			return nil
		})
	}()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(p.stop)
	return p
}

func (p *process) receive(t *testing.T) postrider.Message {
	t.Helper()
	select {
	case m := <-p.handled:
		return m
	case <-time.After(30 * time.Second):
		t.Fatalf("no message has come; the log says\n%s", p.log.text.String())
		panic("unreachable")
	}
}

func quick(context.Context, postrider.Message) error { return nil }

// TestOrderOverConnections repeatedly resets a consumer's connection. Messages that were sent but
// lost are redelivered later, and must not be overtaken.
func TestOrderOverConnections(t *testing.T) {
	t.Parallel()
	const keys, each, all = 5, 300, 1500
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	pub := publisher(t, nats.Config{URL: url})
	defer pub.Close()
	for n := range each {
		var msgs []postrider.Message
		for key := range keys {
			msgs = append(msgs, event(name, strconv.Itoa(key), n))
		}
		if errs := pub.Publish(t.Context(), msgs); errs != nil {
			t.Fatal(errs)
		}
	}
	proxy := flaky.Listen(t, strings.TrimPrefix(url, "nats://"))
	p := startProcess(t, nats.Config{URL: "nats://" + proxy.Addr(), Name: name, Group: "group", AckWait: time.Second}, quick)
	seen := make(map[postrider.ID]bool)
	last := make(map[string]int)
	repeated := 0
	for len(seen) < all {
		m := p.receive(t)
		if seen[m.ID] {
			repeated++
			continue
		}
		seen[m.ID] = true
		n, err := strconv.Atoi(string(m.Payload))
		if err != nil {
			t.Fatal(err)
		}
		if key := m.OrderKey(); n < last[key] {
			t.Fatalf("key %s: message %d came after %d", key, n, last[key])
		}
		last[m.OrderKey()] = n
		if len(seen)%400 == 0 {
			proxy.Reset()
		}
	}
	t.Logf("%d repetitions", repeated)
}

// TestLivingProcessesDoNotStarve lets one process hold a message for long. Another one must
// continue, and log once that there is no order between the two.
func TestLivingProcessesDoNotStarve(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	pub := publisher(t, nats.Config{URL: url})
	defer pub.Close()
	send := func(key string) {
		if errs := pub.Publish(t.Context(), []postrider.Message{event(name, key, 0)}); errs != nil {
			t.Fatal(errs)
		}
	}
	entered, release := make(chan struct{}, 1), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	config := nats.Config{URL: url, Name: name, Group: "group", AckWait: time.Second}
	first := startProcess(t, config, func(_ context.Context, m postrider.Message) error {
		if m.AggregateID == "stuck" {
			entered <- struct{}{}
			<-release
		}
		return nil
	})
	t.Cleanup(letGo)
	send("stuck")
	<-entered
	second := startProcess(t, config, quick)
	for n := range 200 {
		send(fmt.Sprint(n))
	}
	for range 200 {
		select {
		case <-first.handled:
		case <-second.handled:
		case <-time.After(30 * time.Second):
			t.Fatal("not all messages were handled")
		}
	}
	for deadline := time.Now().Add(30 * time.Second); second.log.count("another process") == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the second process does not find out that it is not alone")
		}
		time.Sleep(10 * time.Millisecond)
	}
	letGo()
	if m := first.receive(t); m.AggregateID != "stuck" {
		t.Errorf("got %v", m)
	}
	if n := second.log.count("another process"); n != 1 {
		t.Errorf("the second process has said %d times that it is not alone", n)
	}
}

// TestHandedOverAtOnce stops a consumer with unfinished messages. The next consumer must not have
// to wait for their leases.
func TestHandedOverAtOnce(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	pub := publisher(t, nats.Config{URL: url})
	defer pub.Close()
	for n := range 50 {
		if errs := pub.Publish(t.Context(), []postrider.Message{event(name, "k", n)}); errs != nil {
			t.Fatal(errs)
		}
	}
	entered := make(chan struct{}, 100)
	config := nats.Config{URL: url, Name: name, Group: "group", InFlight: 20, AckWait: time.Minute}
	first := startProcess(t, config, func(context.Context, postrider.Message) error {
		entered <- struct{}{}
		return context.Canceled
	})
	<-entered
	first.stop()
	second := startProcess(t, config, quick)
	for n := range 50 {
		if m := second.receive(t); string(m.Payload) != strconv.Itoa(n) {
			t.Fatalf("message %d: got %s", n, m.Payload)
		}
	}
}
