package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apache "github.com/apache/pulsar-client-go/pulsar"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/internal/need"
)

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := NewPublisher(Config{
		URL: "pulsar://joe:secret@host:6650", Namespace: "one", Token: "t", TokenFile: "f", AdminURL: "host:80",
		IdleTimeout: -1, OperationTimeout: -1, Format: "xml",
	})
	for _, want := range []string{"URL", "Namespace", "Token and TokenFile", "AdminURL", "IdleTimeout", "OperationTimeout", "format"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not reported: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is reported: %v", err)
	}
	_, err = NewConsumer(Config{URL: "http://host", SubscriptionType: "x", InFlight: -1})
	for _, want := range []string{"URL", "topic", "Group is empty", "SubscriptionType", "InFlight"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not reported: %v", want, err)
		}
	}
}

func TestTopicName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"orders":                      "persistent://acme/shop/orders",
		"a/b/c":                       "persistent://a/b/c",
		"persistent://a/b/c":          "persistent://a/b/c",
		"orders-partition-3":          "persistent://acme/shop/orders-partition-3",
		"":                            "",
		"a/b":                         "",
		"persistent://a/b/":           "",
		"non-persistent://a/b/c":      "",
		"http://a/b/c":                "",
		"orders-partition-three":      "",
		"persistent://a/cluster/b/c/": "",
	} {
		got, err := topicName(name, "acme/shop")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q and %v, want %q", name, got, err, want)
		}
	}
}

func open(t *testing.T, change func(*Config)) *Publisher {
	t.Helper()
	cfg := Config{URL: need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar")}
	if change != nil {
		change(&cfg)
	}
	p, err := NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func message(topic, key, text string) postrider.Message {
	m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: key}, []byte(text))
	m.Topic = topic
	return m
}

// TestNothingBehindAFailureElsewhere checks the order of a key whose messages go to different
// topics.
func TestNothingBehindAFailureElsewhere(t *testing.T) {
	t.Parallel()
	good := createTopic(t)
	p := open(t, nil)
	errs := p.Publish(t.Context(), []postrider.Message{
		message(good, "k", "1"),
		message("persistent://no-such/tenant/x", "k", "2"),
		message(good, "k", "3"),
		message(good, "other", "4"),
		message("a/b", "third", "5"),
	})
	if len(errs) != 5 || errs[0] != nil || errs[3] != nil {
		t.Fatalf("got %v", errs)
	}
	if postrider.ScopeOf(errs[1]) != postrider.ScopeName || postrider.ScopeOf(errs[4]) != postrider.ScopeMessage {
		t.Errorf("got %v and %v", errs[1], errs[4])
	}
	if !errors.Is(errs[2], postrider.ErrNotTried) {
		t.Errorf("got %v behind a failure", errs[2])
	}
}

// TestIdleTopicIsClosed publishes again to topics that were closed after being idle.
func TestIdleTopicIsClosed(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *Config) { c.IdleTimeout = time.Millisecond })
	topics := []string{createTopic(t), createTopic(t)}
	for round := range 3 {
		var msgs []postrider.Message
		for _, topic := range topics {
			msgs = append(msgs, message(topic, "k", fmt.Sprint(round)))
		}
		for confirmed := false; !confirmed; { // a topic that is being closed at this moment is unavailable
			errs := p.Publish(t.Context(), msgs)
			confirmed = errs == nil
			for _, err := range errs {
				if err != nil && postrider.ClassOf(err) != postrider.ClassUnavailable {
					t.Fatal(err)
				}
			}
		}
		l, err := p.topics["persistent://public/default/"+topics[0]].Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if round == 2 {
			l.idle.Reset(0)
			<-l.gone
		}
	}
}

// TestNothingIsSentLater cancels a Publish while the broker is silent: anything it may still have
// sent must come before everything published afterwards, in order.
func TestNothingIsSentLater(t *testing.T) {
	t.Parallel()
	topic := createTopic(t)
	server := strings.TrimPrefix(need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar"), "pulsar://")
	proxy := flaky.Listen(t, server)
	p := open(t, func(c *Config) { c.URL = "pulsar://" + proxy.Addr() })
	if errs := p.Publish(t.Context(), []postrider.Message{message(topic, "k", "first")}); errs != nil {
		t.Fatal(errs)
	}
	proxy.SwallowAnswers()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	errs := p.Publish(ctx, []postrider.Message{message(topic, "k", "a"), message(topic, "k", "b")})
	if len(errs) != 2 || postrider.ClassOf(errs[0]) != postrider.ClassUnknown || postrider.ClassOf(errs[1]) != postrider.ClassUnknown {
		t.Fatalf("got %v from a broker that is silent", errs)
	}
	proxy.Reset()
	proxy.Restore()
	if errs := p.Publish(t.Context(), []postrider.Message{message(topic, "k", "last")}); errs != nil {
		t.Fatal(errs)
	}
	got := receive(t, topic, 0, "last")
	if all := strings.Join(got, " "); all != "first a b last" && all != "first a last" && all != "first last" {
		t.Errorf("got %q", all)
	}
}

// receive returns the payloads of a topic up to and including the last one.
func receive(t *testing.T, topic string, limit int, last string) []string {
	t.Helper()
	c, err := NewConsumer(Config{
		URL: need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar"), Name: topic, Group: "reader", InFlight: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got []string
	err = c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
		got = append(got, string(m.Payload)) // of one key, so not concurrently
		if string(m.Payload) == last {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return got
}

// TestUndecodable receives a message that claims to be a CloudEvent but is invalid.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	topic := createTopic(t)
	client, err := apache.NewClient(apache.ClientOptions{URL: need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	producer, err := client.CreateProducer(apache.ProducerOptions{Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Send(t.Context(), &apache.ProducerMessage{
		Payload: []byte("odd"), Key: "k", Properties: map[string]string{"ce-specversion": "9"},
	}); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, topic, 1, "odd"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	topic := createTopic(t)
	in, err := open(t, nil).Inspect(t.Context(), []string{topic})
	if err != nil || len(in.Warnings) != 1 || !strings.Contains(in.Warnings[0].Remedy, "admin_url") {
		t.Errorf("without an admin URL: got %+v and %v", in, err)
	}
	p := open(t, func(c *Config) { c.AdminURL = need.Env(t, "POSTRIDER_TEST_PULSAR_HTTP", "pulsar") })
	in, err = p.Inspect(t.Context(), []string{topic, "no-such-topic", "a/b"})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(in)
	for _, want := range []string{
		"journalSyncData", "bookkeeperAckQuorum:1", "{subscriptions (" + topic + ") 1}", "its disk is the only copy",
		"no-such-topic does not exist", `topic "a/b"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if strings.Contains(text, "topic "+topic+" does not exist") {
		t.Errorf("there is one: %s", text)
	}
	p = open(t, func(c *Config) { c.AdminURL = "http://127.0.0.1:1" })
	if _, err := p.Inspect(t.Context(), []string{topic}); err == nil {
		t.Error("nobody answers, and that is no error")
	}
}

// TestPartitions checks that the keys of a partitioned topic keep their order and that no message
// is lost.
func TestPartitions(t *testing.T) {
	t.Parallel()
	for name, keyBased := range map[string]bool{"MixedBatches": false, "KeyBasedBatches": true} {
		t.Run(name, func(t *testing.T) { testPartitions(t, keyBased) })
	}
}

func testPartitions(t *testing.T, keyBased bool) {
	d, s := settings(t, "", nil)
	topic := createTopic(t) + "-parts"
	address := need.Env(t, "POSTRIDER_TEST_PULSAR_HTTP", "pulsar") + "/admin/v2/persistent/public/default/" + topic + "/partitions"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader("3"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		t.Fatalf("got %v", answer)
	}
	for range 2 { // an existing one is left unchanged
		if err := d.Create(t.Context(), s, topic); err != nil {
			t.Fatal(err)
		}
	}
	var msgs []postrider.Message
	for i := range 300 {
		msgs = append(msgs, message(topic, fmt.Sprint(i%10), fmt.Sprint(i)))
	}
	p := open(t, func(c *Config) { c.KeyBasedBatching = keyBased })
	for _, part := range [][]postrider.Message{msgs[:200], msgs[200:]} {
		if errs := p.Publish(t.Context(), part); errs != nil {
			t.Fatal(errs)
		}
	}
	c, err := NewConsumer(Config{URL: s.URL, Name: topic, Group: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	arrived := make(chan postrider.Message)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, func(_ context.Context, m postrider.Message) error { arrived <- m; return nil })
	}()
	last := make(map[string]int)
	for range msgs {
		m := <-arrived
		var n int
		if _, err := fmt.Sscan(string(m.Payload), &n); err != nil {
			t.Fatal(err)
		}
		if before, ok := last[m.OrderKey()]; ok && n < before {
			t.Errorf("key %s: %d came after %d", m.OrderKey(), n, before)
		}
		last[m.OrderKey()] = n
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestBare(t *testing.T) {
	t.Parallel()
	d, s := settings(t, "", nil)
	topic := createTopic(t)
	if err := d.Bare(t.Context(), s, broker.Load{Name: topic, Messages: 5000, Size: 10, Keys: 7}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Bare(ctx, s, broker.Load{Name: topic, Messages: 10, Size: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v when it was cancelled", err)
	}
}
