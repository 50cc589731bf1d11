package redis_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
)

func TestSuite(t *testing.T) {
	const service = "redis@crash"
	need.Own(t, service)
	address := need.Env(t, "POSTRIDER_TEST_REDIS", service)
	c := connect(t)
	// A key of another type is what no message can be added to.
	forbidden := "forbidden " + rand.Text()
	if err := c.Set(t.Context(), forbidden, "not a stream", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	remove(t, c, forbidden)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}

	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		return brokertest.Harness{
			Server: u.Host,
			Create: func(t *testing.T) string { return stream(t, c) },
			Publisher: func(t *testing.T, server string) postrider.Publisher {
				return publisher(t, redis.Config{URL: "redis://" + server})
			},
			Consumer: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				con, err := redis.NewConsumer(redis.Config{URL: address, Name: name, Group: group, Member: "me", InFlight: limit})
				if err != nil {
					t.Fatal(err)
				}
				return con
			},
			Member: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				con, err := redis.NewConsumer(redis.Config{URL: address, Name: name, Group: group, InFlight: limit, ClaimIdle: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				return con
			},
			Restart:   func(t *testing.T) { need.Restart(t, service) },
			Abilities: brokertest.Abilities{Forbidden: forbidden},
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

// stream returns the name of a stream that is deleted at the end of the test.
func stream(t *testing.T, c *client.Client) string {
	name := "test " + rand.Text()
	remove(t, c, name)
	return name
}

func remove(t *testing.T, c *client.Client, key string) {
	t.Cleanup(func() {
		if err := c.Del(context.WithoutCancel(t.Context()), key).Err(); err != nil {
			t.Logf("deleting %s: %v", key, err)
		}
	})
}

func publisher(t *testing.T, cfg redis.Config) *redis.Publisher {
	t.Helper()
	p, err := redis.NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
