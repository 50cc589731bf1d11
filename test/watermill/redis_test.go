package watermill

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	goredis "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/watermill"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
)

// fields marshals entries in the format of Postrider's own consumers. Watermill's default packs the
// metadata into one field.
type fields struct{}

func (fields) Marshal(_ string, m *message.Message) (map[string]any, error) {
	entry := map[string]any{"data": []byte(m.Payload)}
	for name, value := range m.Metadata {
		entry[name] = value
	}
	return entry, nil
}

// redisDestination is a destination that a relay reaches through Watermill.
func redisDestination(server string, marshaller redisstream.Marshaller) (*watermill.Destination, error) {
	//docs:begin redis
	client := goredis.NewClient(&goredis.Options{Addr: server, MaxRetries: -1, DialTimeout: time.Second})
	publisher, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: client, Marshaller: marshaller}, nil)
	if err != nil {
		return nil, err
	}
	return watermill.NewDestination(publisher, watermill.Config{
		Probe: func(ctx context.Context) error { return client.Ping(ctx).Err() },
		Classify: func(err error) error {
			if strings.Contains(err.Error(), "WRONGTYPE") {
				return postrider.NameUnavailable(err) // the key of this stream has another type
			}
			return err
		},
	})
	//docs:end
}

func redisServer(t *testing.T) (address, host string, c *goredis.Client) {
	t.Helper()
	address = need.Env(t, "POSTRIDER_TEST_REDIS", "redis")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	options, err := goredis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	c = goredis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return address, u.Host, c
}

func stream(t *testing.T, c *goredis.Client) string {
	name := "watermill " + rand.Text()
	t.Cleanup(func() { _ = c.Del(context.WithoutCancel(t.Context()), name).Err() })
	return name
}

func TestRedisStream(t *testing.T) {
	t.Parallel()
	address, host, c := redisServer(t)
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		return brokertest.Harness{
			Server: host,
			Create: func(t *testing.T) string { return stream(t, c) },
			Publisher: func(t *testing.T, server string) postrider.Publisher {
				d, err := redisDestination(server, fields{})
				if err != nil {
					t.Fatal(err)
				}
				return d
			},
			Consumer: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				con, err := redis.NewConsumer(redis.Config{URL: address, Name: name, Group: group, Member: "me", InFlight: limit})
				if err != nil {
					t.Fatal(err)
				}
				return con
			},
			Missing: func(t *testing.T) (string, func()) {
				name := stream(t, c)
				if err := c.Set(t.Context(), name, "not a stream", time.Hour).Err(); err != nil {
					t.Fatal(err)
				}
				return name, func() { c.Del(t.Context(), name) }
			},
			Abilities: brokertest.Abilities{OneAtATime: true},
		}
	})
}
