package rabbitmq_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/internal/need"

	amqp "github.com/rabbitmq/amqp091-go"
)

const maxBytes = 1 << 20

func address(t testing.TB) string { return need.Env(t, "POSTRIDER_TEST_RABBITMQ", "rabbitmq") }

// through redirects all connections to another address.
func through(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func server(t testing.TB) string {
	u, err := url.Parse(address(t))
	if err != nil {
		t.Fatal("POSTRIDER_TEST_RABBITMQ is not a URL")
	}
	return u.Host
}

func publisher(t testing.TB, change func(*rabbitmq.Config)) *rabbitmq.Publisher {
	t.Helper()
	cfg := rabbitmq.Config{URL: address(t), MaxBytes: maxBytes, Logger: quiet()}
	if change != nil {
		change(&cfg)
	}
	p, err := rabbitmq.NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

var lastName atomic.Int64

// full creates a queue that accepts no more messages, until the returned function is called.
func full(t *testing.T) (name string, end func()) {
	t.Helper()
	name = newName()
	admin(t, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-max-length": 0, "x-overflow": "reject-publish"})
		return err
	})
	remove := func() {
		admin(t, func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
	}
	t.Cleanup(remove)
	return name, func() { remove(); create(t, name, nil) }
}

func newName() string { return fmt.Sprintf("test-%d-%d", time.Now().UnixMilli(), lastName.Add(1)) }

// newQueue creates a queue through the driver with some options, and deletes it at the end of the
// test.
func newQueue(t testing.TB, values map[string]string) string {
	t.Helper()
	name := newName()
	create(t, name, values)
	return name
}

func create(t testing.TB, name string, values map[string]string) {
	t.Helper()
	d, err := broker.Lookup("rabbitmq")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Create(context.Background(), &broker.Settings{URL: address(t), Values: values}, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		admin(t, func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, false, false); return err })
	})
}

// admin calls do with a channel of the plain client.
func admin(t testing.TB, do func(*amqp.Channel) error) {
	t.Helper()
	conn, err := amqp.Dial(address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		err = do(ch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ctl runs rabbitmqctl.
func ctl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(need.Env(t, "POSTRIDER_TEST_RABBITMQCTL", "rabbitmq"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("rabbitmqctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// suite runs the suite with the default exchange and one message per key at a time, or with another
// exchange and a publisher that keeps order.
func suite(t *testing.T, pipeline bool) {
	const service = "rabbitmq@crash"
	need.Own(t, service)
	exchange, login := "", address(t)
	if pipeline {
		exchange = newName()
		admin(t, func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(exchange, amqp.ExchangeTopic, true, false, false, false, nil)
		})
		t.Cleanup(func() { admin(t, func(ch *amqp.Channel) error { return ch.ExchangeDelete(exchange, false, false) }) })
		var user string
		user, login = newUser(t, "", ".*", "")
		ctl(t, "set_topic_permissions", user, exchange, "^test-", "")
	}
	values := map[string]string{"exchange": exchange}
	consume := func(t *testing.T, name, _ string, limit int) postrider.Consumer {
		c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address(t), Name: name, InFlight: limit, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		h := brokertest.Harness{
			Server: server(t),
			Create: func(t *testing.T) string { return newQueue(t, values) },
			Publisher: func(t *testing.T, address string) postrider.Publisher {
				return publisher(t, func(c *rabbitmq.Config) {
					c.URL, c.Dial, c.Exchange, c.Pipeline = login, through(address), exchange, pipeline
				})
			},
			Consumer: consume,
			Member:   consume,
			Burying: func(t *testing.T, name, _, dead string) postrider.Consumer {
				c, err := rabbitmq.NewConsumer(rabbitmq.Config{URL: address(t), Name: name, Attempts: 2, DeadLetter: dead, Logger: quiet()})
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			Missing: func(t *testing.T) (string, func()) {
				name := newName()
				return name, func() { create(t, name, values) }
			},
			Restart: func(t *testing.T) {
				// The server keeps new queue definitions in memory for some seconds, and a test's
				// queue is new.
				ctl(t, "eval", "mnesia:sync_log().")
				need.Restart(t, service)
			},
			Plain: func(t *testing.T, name string, bodies ...string) {
				for _, body := range bodies {
					admin(t, func(ch *amqp.Channel) error {
						return ch.PublishWithContext(t.Context(), "", name, false, false, amqp.Publishing{Body: []byte(body)})
					})
				}
			},
			Abilities: brokertest.Abilities{MaxPayload: maxBytes + 2, NoName: strings.Repeat("x", 256), NamesByType: exchange != "", NoPlace: true},
		}
		if pipeline {
			h.Forbidden = func(t *testing.T) (string, func()) {
				name := "forbidden-" + newName()
				create(t, name, values)
				return name, nil
			}
			h.Restart = nil // the pipeline does not affect it, and it takes long
		} else {
			h.Full = full
		}
		return h
	})
}

func TestSuite(t *testing.T) {
	suite(t, false)
}

// TestSuitePipeline runs the suite with an exchange and a publisher that keeps order.
func TestSuitePipeline(t *testing.T) {
	suite(t, true)
}
