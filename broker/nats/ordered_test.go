package nats_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

// publishMany publishes numbered messages of one key.
func publishMany(t *testing.T, url, name string, from, to int) {
	t.Helper()
	p := publisher(t, nats.Config{URL: url})
	defer p.Close()
	for n := from; n < to; n++ {
		if errs := p.Publish(t.Context(), []postrider.Message{event(name, "k", n)}); errs != nil {
			t.Fatal(errs)
		}
	}
}

// payloads receives count messages.
func (p *process) payloads(t *testing.T, count int) (got []int) {
	t.Helper()
	for range count {
		n, err := strconv.Atoi(string(p.receive(t).Payload))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	return got
}

func count(n int) (want []int) {
	for i := range n {
		want = append(want, i)
	}
	return want
}

// TestOrderedHandsOver stops the receiving process with messages that it has not started: the
// standby process must continue at once, in order, and not before.
func TestOrderedHandsOver(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	cfg := nats.Config{URL: url, Name: name, Group: "group", Ordered: true, Lease: 20 * time.Second}
	entered, release := make(chan struct{}), make(chan struct{})
	first := startProcess(t, cfg, func(_ context.Context, m postrider.Message) error {
		if string(m.Payload) == "5" {
			close(entered)
			<-release
		}
		return nil
	})
	publishMany(t, url, name, 0, 20)
	<-entered
	var early, released atomic.Bool
	second := startProcess(t, cfg, func(context.Context, postrider.Message) error {
		early.Store(early.Load() || !released.Load())
		return nil
	})
	stopped := make(chan struct{})
	go func() { defer close(stopped); first.stop() }()
	time.Sleep(700 * time.Millisecond) // the second process has looked at the lease
	released.Store(true)
	close(release)
	<-stopped
	begin := time.Now()
	got := append(first.payloads(t, 6), second.payloads(t, 14)...)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the next process took %v", took)
	}
	if !slices.Equal(got, count(20)) {
		t.Errorf("got %v", got)
	}
	if early.Load() {
		t.Error("the second process handled a message while the first was at work")
	}
	durable, err := admin(t, url).Consumer(t.Context(), strings.ReplaceAll(name, ".", "_"), "group")
	if err != nil {
		t.Fatal(err)
	}
	if wait := durable.CachedInfo().Config.AckWait; wait != cfg.Lease {
		t.Errorf("the ack wait is %v, want that of the lease", wait)
	}
}

// TestOrderedWaitsForWhatIsPending starts with messages that another process has received and not
// acknowledged. It is unknown when they are redelivered.
func TestOrderedWaitsForWhatIsPending(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	stream := strings.ReplaceAll(name, ".", "_")
	publishMany(t, url, name, 0, 30)
	durable, err := admin(t, url).CreateConsumer(t.Context(), stream, jetstream.ConsumerConfig{
		Durable: "group", FilterSubject: name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 1500 * time.Millisecond, MaxAckPending: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := durable.Fetch(10)
	if err != nil {
		t.Fatal(err)
	}
	for range batch.Messages() { // and do not acknowledge them
	}
	p := startProcess(t, nats.Config{URL: url, Name: name, Group: "group", Ordered: true, Lease: time.Second}, quick)
	if got := p.payloads(t, 30); !slices.Equal(got, count(30)) {
		t.Errorf("got %v", got)
	}
	if p.log.count("nats consumer edit "+stream+" group --wait=1s") != 1 {
		t.Error("the log has not the command that shortens the ack wait")
	}
}

// TestOrderedLosesTheLease replaces the lease entry with one of another owner: nothing must be
// handled until that owner has been silent for a lease, and then everything.
func TestOrderedLosesTheLease(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	p := startProcess(t, nats.Config{URL: url, Name: name, Group: "gr(o)up", Ordered: true, Lease: time.Second}, quick)
	publishMany(t, url, name, 0, 3)
	p.payloads(t, 3)
	bucket, err := admin(t, url).KeyValue(t.Context(), "postrider-leases")
	if err != nil {
		t.Fatal(err)
	}
	key := strings.ReplaceAll(name, ".", "_") + ".gr=28o=29up"
	if _, err := bucket.PutString(t.Context(), key, "another"); err != nil {
		t.Fatal(err)
	}
	for p.log.count("lease lost") == 0 {
		time.Sleep(time.Millisecond)
	}
	lost := time.Now()
	publishMany(t, url, name, 3, 6)
	got := p.payloads(t, 3)
	if took := time.Since(lost); took < 700*time.Millisecond || took > 4*time.Second || !slices.Equal(got, []int{3, 4, 5}) {
		t.Errorf("got %v, %v after the lease was lost", got, took)
	}
	p.stop()
	if entry, err := bucket.Get(t.Context(), key); err != nil || len(entry.Value()) != 0 {
		t.Errorf("the lease was not released: %v, %v", entry, err)
	}
}

func TestOrderedRefuses(t *testing.T) {
	t.Parallel()
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	name := create(t, url, false, 1)
	if _, err := nats.NewConsumer(nats.Config{URL: url, Name: name, Group: "group", Ordered: true, Lease: time.Millisecond}); err == nil {
		t.Error("a lease of 1 ms is accepted")
	}
	_, err := admin(t, url).CreateConsumer(t.Context(), strings.ReplaceAll(name, ".", "_"), jetstream.ConsumerConfig{
		Durable: "group", FilterSubject: name, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = consumer(t, nats.Config{URL: url, Name: name, Group: "group", Ordered: true}).Consume(t.Context(), quick)
	if err == nil || !strings.Contains(err.Error(), "max ack pending") {
		t.Errorf("a durable consumer without a limit is used: %v", err)
	}
}
