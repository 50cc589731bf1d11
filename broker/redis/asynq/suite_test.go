package asynq_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"testing"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/redis/asynq"
	"github.com/postrider/postrider/internal/need"
)

func TestSuite(t *testing.T) {
	const service = "redis@crash"
	need.Own(t, service)
	address := need.Env(t, "POSTRIDER_TEST_REDIS", service)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		queue := queueName(t) // one per test, because workers take tasks of every type
		return brokertest.Harness{
			Server: u.Host,
			Create: func(t *testing.T) string { return "type " + rand.Text() },
			Publisher: func(t *testing.T, server string) postrider.Publisher {
				return publisher(t, asynq.Config{URL: "redis://" + server, Queue: queue})
			},
			Consumer: func(t *testing.T, _, _ string, limit int) postrider.Consumer {
				con, err := asynq.NewConsumer(asynq.Config{URL: address, Queue: queue, InFlight: limit})
				if err != nil {
					t.Fatal(err)
				}
				return con
			},
			Restart:   func(t *testing.T) { need.Restart(t, service) },
			Abilities: brokertest.Abilities{NoName: " ", Dedup: true, OneAtATime: true, Unordered: true, NamesByType: true},
		}
	})
}

func connect(t *testing.T) *client.Client {
	t.Helper()
	options, err := client.ParseURL(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// queueName returns a queue that is deleted at the end of the test.
func queueName(t *testing.T) string {
	c := connect(t)
	name := "test-" + rand.Text()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		keys := c.Scan(ctx, 0, "asynq:{"+name+"}:*", 1000).Iterator()
		for keys.Next(ctx) {
			c.Del(ctx, keys.Val())
		}
		c.SRem(ctx, "asynq:queues", name)
	})
	return name
}

func publisher(t *testing.T, cfg asynq.Config) *asynq.Publisher {
	t.Helper()
	p, err := asynq.NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
