package rabbitmq_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/broker/rabbitmq"
)

// TestSingleActiveConsumer breaks the connection of an active consumer while another stands by: the
// second must continue with the unacknowledged messages, in order.
func TestSingleActiveConsumer(t *testing.T) {
	t.Parallel()
	name := newName()
	admin(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-single-active-consumer": true})
		return err
	})
	t.Cleanup(func() {
		admin(t, func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
	})
	const all, stuck = 100, 30
	p := publisher(t, nil)
	for n := range all {
		m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: "k"}, []byte(strconv.Itoa(n)))
		m.Topic = name
		if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
			t.Fatal(errs)
		}
	}
	consume := func(server string, handle func(n int)) {
		c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address(t), Name: name, InFlight: 16, Logger: quiet(), Dial: through(server)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var run sync.WaitGroup
		run.Go(func() {
			if err := c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
				n, err := strconv.Atoi(string(m.Payload))
				handle(n)
				return err
			}); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() { cancel(); run.Wait() })
	}
	proxy := flaky.Listen(t, server(t))
	hangs, release := make(chan struct{}), make(chan struct{})
	hang := sync.OnceFunc(func() { close(hangs) })
	consume(proxy.Addr(), func(n int) {
		if n >= stuck {
			hang()
			<-release
		}
	})
	t.Cleanup(func() { close(release) })
	<-hangs
	handled := make(chan int, 2*all)
	consume(server(t), func(n int) { handled <- n })
	for consumers, deadline := 0, time.Now().Add(30*time.Second); consumers < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the second consumer does not come")
		}
		admin(t, func(ch *amqp.Channel) error {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			consumers = q.Consumers
			return err
		})
	}
	proxy.Cut()
	for n, next := -1, stuck; n < all-1; { // some earlier acknowledgements may be lost
		select {
		case n = <-handled:
		case <-time.After(30 * time.Second):
			t.Fatalf("message %d does not come", next)
		}
		if n > next {
			t.Fatalf("message %d came before %d", n, next)
		}
		next = max(next, n+1)
	}
}
