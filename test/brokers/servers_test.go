package brokers_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/internal/need"

	_ "github.com/postrider/postrider/broker/kafka"
	_ "github.com/postrider/postrider/broker/nats"
	_ "github.com/postrider/postrider/broker/pulsar"
	_ "github.com/postrider/postrider/broker/rabbitmq"
	_ "github.com/postrider/postrider/broker/redis"
	_ "github.com/postrider/postrider/broker/redis/asynq"
	_ "github.com/postrider/postrider/broker/sqs"
)

// server is a real broker, found by its driver and an environment variable.
type server struct {
	driver   string
	variable string // of the environment
	service  string // name in dev/services
	values   map[string]string
	login    string // user and password, for servers that also require TLS

	queueOption bool // the option "queue" names the publisher's queue; the name is only the type of a task
	unordered   bool // its consumers guarantee no order
	endpoint    bool // its address is the option "endpoint"; the URL names a region, and names end in .fifo
	forgets     bool // loses its data when it is killed, and is slow: long tier only
	once        bool // can be asked what has arrived, so that nothing comes twice
	onceOption  bool // only with the option "once"
}

var servers = []server{
	{driver: "nats", variable: "POSTRIDER_TEST_NATS", service: "nats", once: true},
	{driver: "rabbitmq", variable: "POSTRIDER_TEST_RABBITMQ", service: "rabbitmq"},
	{driver: "kafka", variable: "POSTRIDER_TEST_KAFKA", service: "kafka", values: map[string]string{"partitions": "4"}, onceOption: true},
	{driver: "redis", variable: "POSTRIDER_TEST_REDIS", service: "redis", once: true},
	{driver: "asynq", variable: "POSTRIDER_TEST_REDIS", service: "redis", queueOption: true, unordered: true},
	{driver: "pulsar", variable: "POSTRIDER_TEST_PULSAR", service: "pulsar"},
	{driver: "sqs", variable: "POSTRIDER_TEST_ELASTICMQ", service: "elasticmq", endpoint: true, forgets: true},
}

// killable returns a server of the same kind that tests may kill while they own it.
func (s server) killable() string { return s.service + "@crash" }

// each runs a test once for every broker.
func each(t *testing.T, test func(t *testing.T, s server)) {
	for _, s := range servers {
		t.Run(s.driver, func(t *testing.T) {
			if s.forgets {
				need.Long(t, s.service+" is slow")
			}
			test(t, s)
		})
	}
}

// pick returns the size of a test: small for every change, large for the long tier.
func pick(small, large int) int {
	if need.IsLong() {
		return large
	}
	return small
}

var lastName atomic.Int64

func (s server) find(t *testing.T) broker.Driver {
	t.Helper()
	d, err := broker.Lookup(s.driver)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s server) settings(t *testing.T, more map[string]string) *broker.Settings {
	t.Helper()
	address := need.Env(t, s.variable, s.service)
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	d := s.find(t)
	values := maps.Clone(s.values)
	if values == nil {
		values = make(map[string]string)
	}
	maps.Copy(values, more)
	if s.endpoint {
		values["endpoint"] = "http://" + address
		address = "us-east-1"
		t.Setenv("AWS_ACCESS_KEY_ID", "local")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	}
	scheme := d.Schemes[0] + "://"
	if s.login != "" {
		scheme = d.Schemes[1] + "://" + s.login + "@"
		values["ca_file"] = filepath.Join(need.Env(t, "POSTRIDER_TEST_CA", s.service), "ca.pem")
	}
	return &broker.Settings{URL: scheme + address, Values: values, Logger: logger(t)}
}

// logger prints the log of a broker's client if a test fails with -v, and nothing otherwise:
// outages are intended.
func logger(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// create returns a new name.
func (s server) create(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("e2e-%d-%d", time.Now().UnixMilli(), lastName.Add(1))
	if s.endpoint {
		name += ".fifo"
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d := s.find(t); d.Create != nil {
		if err := d.Create(ctx, s.settings(t, nil), name); err != nil {
			t.Fatalf("creating %s: %v", name, err)
		}
	}
	return name
}

func (s server) publisher(t *testing.T, name string) postrider.Publisher {
	t.Helper()
	return s.open(t, s.sending(t, name))
}

// sending returns the settings of a publisher.
func (s server) sending(t *testing.T, name string) *broker.Settings {
	t.Helper()
	if s.queueOption {
		return s.settings(t, map[string]string{"queue": name})
	}
	return s.settings(t, nil)
}

func (s server) open(t *testing.T, settings *broker.Settings) postrider.Publisher {
	t.Helper()
	p, err := s.find(t).Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the publisher: %v", err)
		}
	})
	return p
}

// flaky opens a publisher behind a bad network.
func (s server) flaky(t *testing.T, name string) (postrider.Publisher, *flaky.Proxy) {
	t.Helper()
	settings := s.sending(t, name)
	u, err := url.Parse(settings.URL)
	if err != nil {
		t.Fatal("the server's address is not a URL")
	}
	if s.endpoint {
		u.Host = strings.TrimPrefix(settings.Values["endpoint"], "http://")
	}
	proxy := flaky.Listen(t, u.Host)
	settings.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, proxy.Addr())
	}
	if !s.endpoint {
		u.Host = proxy.Addr() // for clients without a custom dialer
		settings.URL = u.String()
	}
	return s.open(t, settings), proxy
}

func (s server) consumer(t *testing.T, name string) postrider.Consumer {
	t.Helper()
	return s.member(t, name, "e2e")
}

// member opens a consumer of a group: a new one receives everything that the name stores.
func (s server) member(t *testing.T, name, group string) postrider.Consumer {
	t.Helper()
	settings := s.settings(t, map[string]string{"name": name, "group": group, "in_flight": "256"})
	c, err := s.find(t).Subscribe(settings)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
