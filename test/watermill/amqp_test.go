package watermill

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	wm "github.com/ThreeDotsLabs/watermill"
	wmamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/watermill"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/internal/need"
)

// lazy opens a publisher with the first message, because Watermill's AMQP publisher fails if the
// server is down at the start.
type lazy struct {
	open func() (*wmamqp.Publisher, error)

	mu  sync.Mutex
	pub *wmamqp.Publisher
}

func (l *lazy) get() (*wmamqp.Publisher, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pub == nil {
		var err error
		if l.pub, err = l.open(); err != nil {
			return nil, postrider.Unavailable(err)
		}
	}
	return l.pub, nil
}

func (l *lazy) Publish(topic string, msgs ...*message.Message) error {
	p, err := l.get()
	if err != nil {
		return err
	}
	return p.Publish(topic, msgs...)
}

func (l *lazy) Close() error {
	if l.pub == nil {
		return nil
	}
	return l.pub.Close()
}

// amqpDestination is a destination behind another address than the server's own.
func amqpDestination(address, at string) (*watermill.Destination, error) {
	cfg := wmamqp.NewDurableQueueConfig(address)
	cfg.Publish.ConfirmDelivery = true
	cfg.Connection.AmqpConfig = &amqp.Config{Heartbeat: 10 * time.Second, Dial: func(network, _ string) (net.Conn, error) {
		return net.DialTimeout(network, at, time.Second)
	}}
	cfg.Connection.Reconnect = &wmamqp.ReconnectConfig{
		BackoffInitialInterval: 50 * time.Millisecond, BackoffMultiplier: 1, BackoffMaxInterval: time.Second}
	cfg.Marshaler = wmamqp.DefaultMarshaler{PostprocessPublishing: func(p amqp.Publishing) amqp.Publishing {
		p.MessageId, _ = p.Headers[wmamqp.DefaultMessageUUIDHeaderKey].(string)
		p.ContentType, _ = p.Headers[watermill.MetadataContentType].(string)
		for _, name := range []string{wmamqp.DefaultMessageUUIDHeaderKey, watermill.MetadataContentType, watermill.MetadataKey} {
			delete(p.Headers, name)
		}
		return p
	}}
	l := &lazy{open: func() (*wmamqp.Publisher, error) { return wmamqp.NewPublisher(cfg, wm.NopLogger{}) }}
	// The publisher itself reports late that its connection is broken.
	probe := func(context.Context) error {
		conn, err := amqp.DialConfig(address, *cfg.Connection.AmqpConfig)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return watermill.NewDestination(l, watermill.Config{Prefix: "cloudEvents_", Probe: probe})
}

func TestAMQP(t *testing.T) {
	t.Parallel()
	address := need.Env(t, "POSTRIDER_TEST_RABBITMQ", "rabbitmq")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		return brokertest.Harness{
			Server: u.Host,
			Create: func(t *testing.T) string { return queue(t, address) },
			Publisher: func(t *testing.T, at string) postrider.Publisher {
				d, err := amqpDestination(address, at)
				if err != nil {
					t.Fatal(err)
				}
				return d
			},
			Consumer: func(t *testing.T, name, _ string, limit int) postrider.Consumer {
				c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address, Name: name, InFlight: limit, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			Abilities: brokertest.Abilities{OneAtATime: true},
		}
	})
}

// queue creates a durable queue, and deletes it at the end.
func queue(t *testing.T, address string) string {
	t.Helper()
	name := fmt.Sprintf("watermill-%s", postrider.NewID())
	do := func(work func(*amqp.Channel) error) {
		conn, err := amqp.Dial(address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err == nil {
			err = work(ch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	do(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, nil)
		return err
	})
	t.Cleanup(func() {
		do(func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
	})
	return name
}
