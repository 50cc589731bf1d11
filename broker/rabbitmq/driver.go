package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "rabbitmq",
		Schemes:   []string{"amqp", "amqps"},
		Example:   "amqp://guest:guest@localhost:5672/",
		Doc:       "Messages go to queues of RabbitMQ, directly or through an exchange.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return NewPublisher(configOf(s)) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return NewConsumer(configOf(s)) },
		Create:    create,
		Bare:      bare,
	})
}

func configOf(s *broker.Settings) (c Config) {
	c.unread = s.Fill(&c)
	return c
}

// connect opens a short-lived connection; the end of ctx closes it.
func connect(ctx context.Context, s *broker.Settings) (conn *connection, end func(), err error) {
	c, _, err := configOf(s).complete()
	if err == nil {
		conn, err = c.connect(ctx, "postrider")
	}
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, conn.hangUp)
	return conn, func() { stop(); conn.Close() }, nil
}

func create(ctx context.Context, s *broker.Settings, name string) error {
	conn, end, err := connect(ctx, s)
	if err != nil {
		return err
	}
	defer end()
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("rabbitmq: %w", err)
	}
	args := amqp.Table{"x-queue-type": s.Text("queue_type")}
	version, _ := conn.Properties["version"].(string)
	if s.Text("queue_type") == "quorum" && !strings.HasPrefix(version, "3.") {
		args["x-delivery-limit"] = -1 // otherwise the message is dropped after 20 consumer crashes
	}
	_, err = ch.QueueDeclare(name, true, false, false, false, args)
	if e := exception(err); e != nil && strings.Contains(e.Reason, "inequivalent arg") {
		return nil // it exists, with other properties
	}
	if exchange := s.Text("exchange"); err == nil && exchange != "" {
		err = ch.QueueBind(name, name, exchange, false, nil)
	}
	if err != nil {
		return fmt.Errorf("rabbitmq: creating queue %s: %w", name, err)
	}
	return nil
}

// Parameters with which the client alone is fastest.
const (
	bareChannels = 4
	bareInFlight = 500 // per channel
)

// bare sends a load with the client alone, on several channels of one connection. Messages are
// persistent and mandatory, because a confirmation has no value otherwise. They carry no key: the
// protocol has no field for one.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	conn, end, err := connect(ctx, s)
	if err != nil {
		return err
	}
	defer end()
	errs := make([]error, bareChannels)
	var run sync.WaitGroup
	for i := range bareChannels {
		n := (load.Messages + i) / bareChannels
		run.Go(func() { errs[i] = bareChannel(conn, s.Text("exchange"), load.Name, make([]byte, load.Size), n) })
	}
	run.Wait()
	return errors.Join(errs...)
}

func bareChannel(conn *connection, exchange, route string, body []byte, n int) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	err = ch.Confirm(false)
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	window := make([]*amqp.DeferredConfirmation, bareInFlight)
	for i := 0; i < n+bareInFlight && err == nil; i++ {
		place := &window[i%bareInFlight]
		if *place != nil && !(*place).Wait() {
			return fmt.Errorf("rabbitmq: message %d of %d was not confirmed", i-bareInFlight, n)
		}
		if *place = nil; i < n {
			message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
			*place, err = ch.PublishWithDeferredConfirm(exchange, route, true, false, message)
		}
	}
	if len(returned) > 0 {
		return fmt.Errorf("rabbitmq: no queue takes messages for %s", route)
	}
	return err
}
