package redis_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
)

func TestSuite(t *testing.T) {
	const service = "redis@crash"
	need.Own(t, service)
	address := need.Env(t, "POSTRIDER_TEST_REDIS", service)
	only := strings.TrimSuffix(strings.TrimPrefix(address, "redis://"), "/0")
	s := site{
		service: service, config: redis.Config{URL: address}, admin: connect(t), server: func(testing.TB) string { return only },
		dial: func(server string) func(context.Context, string, string) (net.Conn, error) {
			return func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, server)
			}
		},
	}
	s.run(t, brokertest.Abilities{Recalls: true})
}

func TestSuiteOfCluster(t *testing.T) {
	const service = "redis-cluster"
	need.Own(t, service)
	s := site{service: service, config: clusterConfig(t), admin: connectToCluster(t), server: flaky.Switchboard, dial: flaky.Through}
	s.run(t, brokertest.Abilities{OutageOfNames: true, SlowRestart: true, Recalls: true})
}

func TestSuiteOfSentinel(t *testing.T) {
	need.Long(t, "the whole suite once more: what differs is who is dialled")
	const service = "redis-sentinel"
	need.Own(t, service)
	s := site{service: service, config: sentinelConfig(t), server: flaky.Switchboard, dial: flaky.Through}
	s.admin = client.NewFailoverClient(&client.FailoverOptions{
		SentinelAddrs: hosts(s.config.URL), SentinelPassword: "watch", Password: "secret", MasterName: "shop",
	})
	t.Cleanup(func() { _ = s.admin.Close() })
	s.run(t, brokertest.Abilities{SlowRestart: true, Recalls: true})
}

func clusterConfig(t *testing.T) redis.Config {
	t.Helper()
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_REDIS_CLUSTER", "redis-cluster")
	pem, err := os.ReadFile(ca.File("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	address = strings.Replace(address, "//", "//postrider:secret@", 1)
	return redis.Config{URL: address, Cluster: true, TLS: &tls.Config{RootCAs: authorities}}
}

func connectToCluster(t *testing.T) client.UniversalClient {
	t.Helper()
	cfg := clusterConfig(t)
	c := client.NewClusterClient(&client.ClusterOptions{Addrs: hosts(cfg.URL), Username: "postrider", Password: "secret", TLSConfig: cfg.TLS})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func sentinelConfig(t *testing.T) redis.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "watch")
	if err := os.WriteFile(file, []byte("watch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return redis.Config{URL: need.Env(t, "POSTRIDER_TEST_REDIS_SENTINEL", "redis-sentinel"), Sentinel: "shop", SentinelPasswordFile: file}
}

// hosts returns the hosts and ports of a URL.
func hosts(address string) []string {
	_, rest, _ := strings.Cut(address, "@")
	rest, _, _ = strings.Cut(rest, "/")
	return strings.Split(rest, ",")
}

// site is one deployment of Redis.
type site struct {
	service string
	config  redis.Config // for a user with all permissions
	admin   client.UniversalClient
	server  func(testing.TB) string // the server that publishers reach through dial
	dial    func(server string) func(ctx context.Context, network, address string) (net.Conn, error)
}

func (s site) run(t *testing.T, abilities brokertest.Abilities) {
	c := s.admin
	// A user without write access to some keys.
	user, password := "user"+rand.Text(), rand.Text()
	s.do(t, "acl", "setuser", user, "on", ">"+password, "~test*", "~{test*", "+@all")
	t.Cleanup(func() { s.do(t, "acl", "deluser", user) })
	consumer := func(t *testing.T, cfg redis.Config, name, group string) postrider.Consumer {
		cfg.URL, cfg.TLS, cfg.Cluster = s.config.URL, s.config.TLS, s.config.Cluster
		cfg.Sentinel, cfg.SentinelPasswordFile = s.config.Sentinel, s.config.SentinelPasswordFile
		cfg.Name, cfg.Group = name, group
		con, err := redis.NewConsumer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return con
	}
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		return brokertest.Harness{
			Server:    s.server(t),
			Abilities: abilities,
			Create:    func(t *testing.T) string { return stream(t, c) },
			Publisher: func(t *testing.T, server string) postrider.Publisher {
				cfg := s.config
				_, rest, ok := strings.Cut(cfg.URL, "@")
				if !ok {
					_, rest, _ = strings.Cut(cfg.URL, "//")
				}
				scheme, _, _ := strings.Cut(cfg.URL, ":")
				cfg.URL, cfg.Dial = scheme+"://"+user+":"+password+"@"+rest, s.dial(server)
				return publisher(t, cfg)
			},
			Elsewhere: func(t *testing.T) postrider.Publisher {
				cfg := s.config
				cfg.Source = "/elsewhere"
				return publisher(t, cfg)
			},
			Consumer: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				return consumer(t, redis.Config{Member: "me", InFlight: limit}, name, group)
			},
			Burying: func(t *testing.T, name, group, dead string) postrider.Consumer {
				return consumer(t, redis.Config{Member: "me", Attempts: 2, DeadLetter: dead}, name, group)
			},
			Member: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				return consumer(t, redis.Config{InFlight: limit, ClaimIdle: time.Second}, name, group)
			},
			Plain: func(t *testing.T, name string, bodies ...string) {
				for _, body := range bodies {
					if err := c.XAdd(t.Context(), &client.XAddArgs{Stream: name, Values: []string{"data", body}}).Err(); err != nil {
						t.Fatal(err)
					}
				}
			},
			// No message can be added to a key of another type.
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
				return name, func() { s.do(t, "acl", "setuser", user, "~"+name) }
			},
			Restart: func(t *testing.T) {
				need.Restart(t, s.service)
				s.do(t, "acl", "setuser", user, "on", ">"+password, "~test*", "~{test*", "+@all")
			},
		}
	})
}

// do executes a command on the server, or on each node of a cluster.
func (s site) do(t *testing.T, args ...any) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	run := func(ctx context.Context, c *client.Client) error { return c.Do(ctx, args...).Err() }
	var err error
	switch c := s.admin.(type) {
	case *client.ClusterClient:
		err = c.ForEachShard(ctx, run)
	case *client.Client:
		err = run(ctx, c)
	}
	if err != nil {
		t.Fatal(err)
	}
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
func stream(t *testing.T, c client.UniversalClient) string {
	name := "test " + rand.Text()
	remove(t, c, name)
	return name
}

func remove(t *testing.T, c client.UniversalClient, key string) {
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
