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
	// A user who may not write to some keys.
	user, password := "user"+rand.Text(), rand.Text()
	allow := func(t *testing.T) {
		if err := c.Do(t.Context(), "acl", "setuser", user, "on", ">"+password, "~test*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow(t)
	t.Cleanup(func() { connect(t).Do(context.WithoutCancel(t.Context()), "acl", "deluser", user) })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}

	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		return brokertest.Harness{
			Server: u.Host,
			Create: func(t *testing.T) string { return stream(t, c) },
			Publisher: func(t *testing.T, server string) postrider.Publisher {
				return publisher(t, redis.Config{URL: "redis://" + user + ":" + password + "@" + server})
			},
			Consumer: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				con, err := redis.NewConsumer(redis.Config{URL: address, Name: name, Group: group, Member: "me", InFlight: limit})
				if err != nil {
					t.Fatal(err)
				}
				return con
			},
			Burying: func(t *testing.T, name, group, dead string) postrider.Consumer {
				con, err := redis.NewConsumer(redis.Config{URL: address, Name: name, Group: group, Member: "me", Attempts: 2, DeadLetter: dead})
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
			Plain: func(t *testing.T, name string, bodies ...string) {
				for _, body := range bodies {
					if err := c.XAdd(t.Context(), &client.XAddArgs{Stream: name, Values: []string{"data", body}}).Err(); err != nil {
						t.Fatal(err)
					}
				}
			},
			// A key of another type is what no message can be added to.
			Missing: func(t *testing.T) (string, func()) {
				name := stream(t, c)
				if err := c.Set(t.Context(), name, "not a stream", time.Hour).Err(); err != nil {
					t.Fatal(err)
				}
				return name, func() { c.Del(t.Context(), name) }
			},
			Forbidden: func(t *testing.T) (string, func()) {
				name := "forbidden-" + rand.Text()
				remove(t, c, name)
				return name, func() {
					if err := c.Do(t.Context(), "acl", "setuser", user, "~"+name).Err(); err != nil {
						t.Fatal(err)
					}
				}
			},
			Restart: func(t *testing.T) {
				need.Restart(t, service)
				allow(t)
			},
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
