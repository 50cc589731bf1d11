package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest/flaky"
)

// collector runs consumers of one group and records what they have handled.
type collector struct {
	mu      sync.Mutex
	seen    map[string]int
	arrived chan struct{}
}

func (c *collector) start(t *testing.T, cfg Config) (stop func()) {
	stop, _ = c.startCounting(t, cfg)
	return stop
}

// startCounting also returns how many messages this consumer has handled.
func (c *collector) startCounting(t *testing.T, cfg Config) (stop func(), handled *atomic.Int64) {
	t.Helper()
	handled = new(atomic.Int64)
	con, err := NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- con.Consume(ctx, func(_ context.Context, m postrider.Message) error {
			c.mu.Lock()
			c.seen[string(m.Payload)]++
			c.mu.Unlock()
			handled.Add(1)
			select {
			case c.arrived <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(30 * time.Second):
			t.Error("Consume does not end")
		}
	})
	t.Cleanup(stop)
	return stop, handled
}

func (c *collector) wait(t *testing.T, n int) {
	t.Helper()
	timeout := time.After(60 * time.Second)
	for {
		c.mu.Lock()
		have := len(c.seen)
		c.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-c.arrived:
		case <-timeout:
			t.Fatalf("%d of %d messages have arrived", have, n)
		}
	}
}

// TestMembersComeAndGo lets a second member join and the first leave under load: no message must be
// lost.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, nil)
	p := open1(t, Config{URL: "kafka://" + server(t)})
	cfg := Config{URL: "kafka://" + server(t), Name: topic, Group: topic}
	c := &collector{seen: make(map[string]int), arrived: make(chan struct{}, 1)}
	sent := 0
	send := func() {
		var msgs []postrider.Message
		for range 500 {
			msgs = append(msgs, parcel(topic, fmt.Sprint(sent%40), sent))
			sent++
		}
		if errs := p.Publish(t.Context(), msgs); errs != nil {
			t.Fatal(errs[0])
		}
	}
	send()
	first := c.start(t, cfg)
	c.wait(t, sent/2)
	second, handled := c.startCounting(t, cfg)
	for deadline := time.Now().Add(60 * time.Second); handled.Load() < 100; {
		if time.Now().After(deadline) {
			t.Fatal("the second member gets nothing")
		}
		send()
		c.wait(t, sent)
	}
	first()
	send()
	c.wait(t, sent)
	second()
	repeated := 0
	for _, n := range c.seen {
		repeated += n - 1
	}
	t.Logf("%d messages, %d repetitions", sent, repeated)
}

// TestConsumerEndsInAnOutage stops a consumer that cannot reach the broker.
func TestConsumerEndsInAnOutage(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, nil)
	p := open1(t, Config{URL: "kafka://" + server(t)})
	proxy := flaky.Listen(t, server(t))
	c := &collector{seen: make(map[string]int), arrived: make(chan struct{}, 1)}
	stop := c.start(t, Config{URL: "kafka://" + server(t), Dial: to(proxy.Addr()), Name: topic, Group: topic})
	if errs := p.Publish(t.Context(), []postrider.Message{parcel(topic, "a", 1)}); errs != nil {
		t.Fatal(errs)
	}
	c.wait(t, 1)
	proxy.Cut()
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("Consume has ended %v after its context", took)
	}
}

// TestNoCloudEvent checks that a record that claims to be a CloudEvent but is invalid is handed
// over undecoded.
func TestNoCloudEvent(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, nil)
	s, err := open1(t, Config{URL: "kafka://" + server(t)}).take(t.Context(), broker.Sender{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := &kgo.Record{Topic: topic, Value: []byte("body"), Headers: []kgo.RecordHeader{{Key: "ce_specversion", Value: []byte("77")}}}
	s.client.Produce(t.Context(), r, nil)
	if err := s.client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := &collector{seen: make(map[string]int), arrived: make(chan struct{}, 1)}
	c.start(t, Config{URL: "kafka://" + server(t), Name: topic, Group: topic})
	c.wait(t, 1)
	if c.seen["body"] != 1 {
		t.Errorf("got %v", c.seen)
	}
}

// joins counts how often a consumer has joined its group.
type joins struct{ atomic.Int64 }

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (j *joins) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, _ kgo.BrokerE2E) {
	if key == 11 { // JoinGroup
		j.Add(1)
	}
}

// TestStaticMember restarts a static member: the other members must keep their partitions.
func TestStaticMember(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, nil)
	p := open1(t, Config{URL: "kafka://" + server(t)})
	cfg := Config{URL: "kafka://" + server(t), Name: topic, Group: topic}
	c := &collector{seen: make(map[string]int), arrived: make(chan struct{}, 1)}
	var others joins
	stay, leave := cfg, cfg
	stay.InstanceID, stay.Options = "a", []kgo.Opt{kgo.WithHooks(&others)}
	leave.InstanceID = "b"
	_, first := c.startCounting(t, stay)
	sent := 0
	send := func() {
		var msgs []postrider.Message
		for range 50 {
			msgs = append(msgs, parcel(topic, fmt.Sprint(sent%40), sent))
			sent++
		}
		if errs := p.Publish(t.Context(), msgs); errs != nil {
			t.Fatal(errs[0])
		}
		c.wait(t, sent)
	}
	send() // the first member leads the group: when the leader returns, all members must rejoin
	stop, second := c.startCounting(t, leave)
	for deadline := time.Now().Add(time.Minute); first.Load() == 0 || second.Load() == 0; {
		if send(); time.Now().After(deadline) {
			t.Fatal("the two do not share the topic")
		}
	}
	before := others.Load()
	stop()
	stop, second = c.startCounting(t, leave)
	for second.Load() == 0 {
		send()
	}
	if n := others.Load() - before; n > 0 {
		t.Errorf("the other member has joined %d times again", n)
	}
	stop()
}
