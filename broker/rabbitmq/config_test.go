package rabbitmq_test

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/rabbitmq"
)

func TestConfigReportsAllMistakes(t *testing.T) {
	t.Parallel()
	_, err := rabbitmq.NewPublisher(rabbitmq.Config{
		URL: "amqp://user:canary@local host", Exchange: strings.Repeat("x", 256), MaxBytes: -1, InFlight: -1, Format: "xml",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"URL", "Exchange", "MaxBytes", "InFlight", "format"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the password is shown: %v", err)
	}
	_, err = rabbitmq.NewConsumer(rabbitmq.Config{URL: "amqp://localhost", InFlight: 70_000, TLS: &tls.Config{}})
	for _, want := range []string{"TLS", "amqps", "Name", "InFlight"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s: %v", want, err)
		}
	}
}

func TestDriver(t *testing.T) {
	t.Parallel()
	d, err := broker.ForURL(address(t))
	if err != nil {
		t.Fatal(err)
	}
	exchange, _ := newExchange(t)
	name := newQueue(t, map[string]string{"exchange": exchange, "queue_type": "quorum"})
	settings := &broker.Settings{URL: address(t), Values: map[string]string{"exchange": exchange, "pipeline": "true", "name": name}, Logger: quiet()}
	if err := d.Create(t.Context(), settings, name); err != nil {
		t.Errorf("creating what is there: %v", err)
	}
	p, err := d.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !p.(broker.OrderKeeper).KeepsOrder() {
		t.Error("pipeline was not heard")
	}
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "a")}); errs != nil {
		t.Fatal(errs)
	}
	if err := d.Bare(t.Context(), settings, broker.Load{Name: name, Messages: 999, Size: 10, Keys: 3}); err != nil {
		t.Fatal(err)
	}
	c, err := d.Subscribe(settings)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(receive(t, c, 1000), func(m postrider.Message) bool { return m.Type == "parcel.moved" }) {
		t.Error("the publisher's message has not come")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Bare(cancelled, settings, broker.Load{Name: name, Messages: 10, Size: 10, Keys: 3}); err == nil {
		t.Error("a load was sent without time")
	}
}

// receive returns the first n messages.
func receive(t *testing.T, c postrider.Consumer, n int) []postrider.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	arrived := make(chan postrider.Message, n)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
			select {
			case arrived <- m:
			default:
			}
			return nil
		})
	}()
	var msgs []postrider.Message
	for range n {
		select {
		case m := <-arrived:
			msgs = append(msgs, m)
		case <-ctx.Done():
			t.Fatalf("%d of %d messages have arrived", len(msgs), n)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return msgs
}

// TestForeignMessages receives messages from senders that do not use Postrider.
func TestForeignMessages(t *testing.T) {
	t.Parallel()
	name := newQueue(t, nil)
	admin(t, func(ch *amqp.Channel) error {
		for _, p := range []amqp.Publishing{
			{MessageId: "liar", ContentType: "application/cloudevents+json", Body: []byte("not JSON"), Headers: amqp.Table{"h": "v"}},
			{MessageId: "plain", ContentType: "text/plain", Body: []byte("hello"), Headers: amqp.Table{"n": int32(7), "list": []any{"a"}}},
		} {
			if err := ch.Publish("", name, false, false, p); err != nil {
				return err
			}
		}
		return nil
	})
	c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address(t), Name: name, InFlight: 1, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	got := receive(t, c, 2)
	if m := got[0]; m.WireID != "liar" || string(m.Payload) != "not JSON" || m.Type != name || m.Headers["h"] != "v" {
		t.Errorf("got %+v", m)
	}
	if m := got[1]; m.WireID != "plain" || string(m.Payload) != "hello" || m.ContentType != "text/plain" || m.Headers["n"] != "7" {
		t.Errorf("got %+v", m)
	}
}

// TestProperties inspects a message with the plain client.
func TestProperties(t *testing.T) {
	t.Parallel()
	for _, format := range codec.Formats() {
		name := newQueue(t, nil)
		p := publisher(t, func(c *rabbitmq.Config) { c.Format = format })
		m := event(name, "key 1")
		m.Headers = map[string]string{"traceparent": "00-1"}
		if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
			t.Fatal(errs)
		}
		admin(t, func(ch *amqp.Channel) error {
			d, ok, err := ch.Get(name, true)
			if !ok || err != nil {
				t.Fatalf("%s: %v, %v", format, ok, err)
			}
			if d.DeliveryMode != amqp.Persistent || d.MessageId != m.ID.String() {
				t.Errorf("%s: got %+v", format, d)
			}
			if id := d.Headers["cloudEvents_id"]; (id == m.ID.String()) != (format == codec.CloudEvents) {
				t.Errorf("%s: got headers %v", format, d.Headers)
			}
			return nil
		})
		if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
			t.Fatal(errs)
		}
		c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address(t), Name: name, Format: format, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		if got := receive(t, c, 1)[0]; got.ID != m.ID || got.OrderKey() == "" {
			t.Errorf("%s: got %+v", format, got)
		}
	}
}
