package rabbitmq_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/rabbitmq"
)

// TestStream checks that a stream receives everything in order, and that consuming from it is
// refused.
func TestStream(t *testing.T) {
	t.Parallel()
	name := newQueue(t, map[string]string{"queue_type": "stream"})
	p := publisher(t, nil)
	const n = 1000
	send := func() {
		msgs := make([]postrider.Message, n)
		for i := range msgs {
			msgs[i] = postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: "1"}, fmt.Appendf(nil, "%d", i))
			msgs[i].Topic = name
		}
		for sent := 0; sent < n; sent += 100 {
			if errs := p.Publish(t.Context(), msgs[sent:sent+100]); errs != nil {
				t.Fatal(errs[0])
			}
		}
	}
	send()
	admin(t, func(ch *amqp.Channel) error {
		if err := ch.Qos(100, 0, false); err != nil {
			return err
		}
		deliveries, err := ch.Consume(name, "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
		if err != nil {
			return err
		}
		for i := range n {
			select {
			case d := <-deliveries:
				if string(d.Body) != fmt.Sprint(i) {
					t.Fatalf("message %d is %s", i, d.Body)
				}
				if err := d.Ack(false); err != nil {
					return err
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%d of %d messages", i, n)
			}
		}
		return nil
	})

	c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address(t), Name: name, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() {
		ended <- c.Consume(ctx, func(context.Context, postrider.Message) error { t.Error("a message was handled"); return nil })
	}()
	for {
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), name+" is a stream") {
				t.Errorf("got %v, want that it is a stream", err)
			}
			return
		case <-time.After(200 * time.Millisecond):
			send()
		}
	}
}
