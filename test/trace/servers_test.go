package trace_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/need"

	_ "github.com/postrider/postrider/broker/kafka"
	_ "github.com/postrider/postrider/broker/nats"
	_ "github.com/postrider/postrider/broker/rabbitmq"
	_ "github.com/postrider/postrider/broker/redis"
)

// server is a real broker.
type server struct {
	driver   string
	variable string // of the environment
	title    string
}

var servers = []server{
	{"nats", "POSTRIDER_TEST_NATS", "NATS JetStream"},
	{"rabbitmq", "POSTRIDER_TEST_RABBITMQ", "RabbitMQ"},
	{"kafka", "POSTRIDER_TEST_KAFKA", "Kafka"},
	{"redis", "POSTRIDER_TEST_REDIS", "Redis Streams"},
}

func (s server) driverOf(t *testing.T) broker.Driver {
	t.Helper()
	d, err := broker.Lookup(s.driver)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s server) settings(t *testing.T, values map[string]string) *broker.Settings {
	t.Helper()
	address := need.Env(t, s.variable, s.driver)
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	return &broker.Settings{URL: s.driverOf(t).Schemes[0] + "://" + address, Values: values, Logger: logger(t)}
}

var lastName atomic.Int64

// create creates a new name.
func (s server) create(t *testing.T, what string) string {
	t.Helper()
	name := fmt.Sprintf("%s-%d-%d", what, time.Now().UnixMilli(), lastName.Add(1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d := s.driverOf(t); d.Create != nil {
		if err := d.Create(ctx, s.settings(t, map[string]string{}), name); err != nil {
			t.Fatalf("creating %s: %v", name, err)
		}
	}
	return name
}

func (s server) publisher(t *testing.T) postrider.Publisher {
	t.Helper()
	p, err := s.driverOf(t).Open(s.settings(t, map[string]string{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func (s server) consumer(t *testing.T, name, group string) postrider.Consumer {
	t.Helper()
	c, err := s.driverOf(t).Subscribe(s.settings(t, map[string]string{"name": name, "group": group}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// logger prints logs if a test fails with -v.
func logger(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
