package brokers_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// cluster is a broker of several nodes.
type cluster struct {
	server
	name   string
	nodes  []string
	leader func(t *testing.T, name string) (node string) // of the object with the name
	short  bool                                          // part of every check
}

func clusters() []cluster {
	return []cluster{{
		name: "nats", nodes: nodes("nats-cluster", 1, 3), leader: natsLeader, short: true,
		server: server{
			driver: "nats", variable: "POSTRIDER_TEST_NATS_CLUSTER", service: "nats-cluster", values: map[string]string{"replicas": "3"}, once: true,
		},
	}, {
		name: "nats@secure", nodes: nodes("nats-cluster", 1, 3, "@secure"), leader: natsLeader,
		server: server{
			driver: "nats", variable: "POSTRIDER_TEST_NATS_CLUSTER_SECURE", service: "nats-cluster@secure", login: "postrider:secret",
			values: map[string]string{"replicas": "3"}, once: true,
		},
	}, {
		name: "redis-cluster", nodes: nodes("redis-cluster", 1, 6), leader: redisPrimary, short: true,
		server: server{
			driver: "redis", variable: "POSTRIDER_TEST_REDIS_CLUSTER", service: "redis-cluster", login: "postrider:secret",
			values: map[string]string{"cluster": "true", "wait_replicas": "1"}, once: true,
		},
	}, {
		name: "redis-sentinel", nodes: nodes("redis-sentinel", 1, 3), leader: watchedPrimary,
		server: server{
			driver: "redis", variable: "POSTRIDER_TEST_REDIS_SENTINEL", service: "redis-sentinel",
			values: map[string]string{"sentinel": "shop", "wait_replicas": "1"}, once: true, // the password is the sentinels'
		},
	}, {
		name: "rabbitmq", nodes: nodes("rabbitmq-cluster", 1, 3), leader: rabbitmqLeader,
		server: server{
			driver: "rabbitmq", variable: "POSTRIDER_TEST_RABBITMQ_CLUSTER", service: "rabbitmq-cluster", login: "postrider:secret",
			values: map[string]string{"queue_type": "quorum"},
		},
	}, {
		name: "kafka", nodes: nodes("kafka-cluster", 1, 3), leader: func(*testing.T, string) string { return "kafka-cluster2" }, // of some partitions
		server: server{
			driver: "kafka", variable: "POSTRIDER_TEST_KAFKA_CLUSTER", service: "kafka-cluster", login: "postrider:secret",
			values: map[string]string{"partitions": "4", "sasl": "scram-sha-512"},
		},
	}, {
		name: "kafka-once", nodes: nodes("kafka-cluster", 1, 3), leader: func(*testing.T, string) string { return "kafka-cluster2" }, // and of some transactional IDs
		server: server{
			driver: "kafka", variable: "POSTRIDER_TEST_KAFKA_CLUSTER", service: "kafka-cluster", login: "postrider:secret", once: true,
			values: map[string]string{"partitions": "4", "sasl": "scram-sha-512", "once": "true"},
		},
	}}
}

func nodes(kind string, from, to int, instance ...string) (list []string) {
	for n := from; n <= to; n++ {
		list = append(list, kind+strconv.Itoa(n)+strings.Join(instance, ""))
	}
	return list
}

// failure is a fault of a cluster.
type failure struct {
	name  string
	only  string // cluster
	short bool
	begin func(t *testing.T, c cluster, leader string)
	end   func(t *testing.T, c cluster, leader string) // returns when all nodes work again
}

var failures = []failure{
	{
		name: "leader killed", short: true,
		begin: func(t *testing.T, _ cluster, leader string) { need.Services(t, "kill", leader) },
		end:   func(t *testing.T, _ cluster, leader string) { need.Services(t, "start", leader) },
	},
	{
		// For the other nodes this is a partition: they cannot reach the leader, and it comes back
		// without knowing that time has passed.
		name:  "leader cut off",
		begin: func(t *testing.T, _ cluster, leader string) { need.Services(t, "pause", leader) },
		end:   func(t *testing.T, _ cluster, leader string) { need.Services(t, "resume", leader) },
	},
	{
		name:  "node replaced by an empty one",
		only:  "nats",
		begin: func(t *testing.T, _ cluster, leader string) { need.Services(t, "wipe", leader) },
		end:   func(t *testing.T, _ cluster, leader string) { need.Services(t, "up", leader) },
	},
	{
		name:  "all nodes restarted in turn",
		begin: func(*testing.T, cluster, string) {},
		end: func(t *testing.T, c cluster, _ string) {
			for _, node := range c.nodes {
				need.Services(t, "restart", node)
			}
		},
	},
	{
		name:  "disk alarm",
		only:  "rabbitmq",
		begin: func(t *testing.T, _ cluster, _ string) { clusterctl(t, "set_disk_free_limit", "1000000GB") },
		end:   func(t *testing.T, _ cluster, _ string) { clusterctl(t, "set_disk_free_limit", "50MB") },
	},
}

// TestClusterFailures injects each failure while a relay sends to the cluster and a consumer
// receives. No message is lost, first receipts are in order, and delivery continues by itself
// within 15 s after the cluster has recovered. Where nothing may come twice, the cluster then has
// each message once.
func TestClusterFailures(t *testing.T) {
	for _, c := range clusters() {
		for _, f := range failures {
			if (f.only != "" && f.only != c.name) || (!need.IsLong() && !(c.short && f.short)) {
				continue
			}
			t.Run(c.name+"/"+f.name, func(t *testing.T) {
				need.Own(t, c.service)
				if c.name == "redis-sentinel" {
					c.values["sentinel_password_file"] = secretFile(t, "watch")
				}
				c.suffer(t, f)
			})
		}
	}
}

func (c cluster) suffer(t *testing.T, f failure) {
	length := time.Duration(pick(8, 60)) * time.Second
	s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), c.create(t), 100)
	r, stop := s.carry(c.publisher(t, s.name))
	j := newJudge(-1)
	heard := s.listen(c.consumer(t, s.name), j)
	load := s.steady(500)
	s.delivered(r, 1000, time.Minute)

	leader := c.leader(t, s.name)
	restore := sync.OnceFunc(func() { f.end(t, c, leader) })
	t.Cleanup(restore) // also when the test fails
	f.begin(t, c, leader)
	begun := time.Now()
	time.Sleep(length / 2)
	meanwhile := j.count()
	restore()
	whole := time.Now()
	recovered := func() bool { return s.committed.Load()-int64(j.count()) < 500 } // messages of one second
	for !recovered() && time.Since(whole) < time.Minute {
		time.Sleep(10 * time.Millisecond)
	}
	recovery := time.Since(whole)
	time.Sleep(max(0, length-time.Since(begun)))
	load()
	s.enqueue(s.keys) // behind every repetition
	s.delivered(r, s.committed.Load(), time.Minute)
	stop()
	for deadline := time.Now().Add(time.Minute); j.count() < int(s.committed.Load()) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	heard()
	stats := r.Stats()
	t.Logf("%d received before the end of the failure, which took %v; recovery %v after it; longest silence %v; %d refused",
		meanwhile, whole.Sub(begun).Round(time.Millisecond), recovery.Round(time.Millisecond), j.silence().Round(time.Millisecond), stats.Refused)
	if recovery > 15*time.Second {
		t.Errorf("it took %v until everything went on", recovery)
	}
	if stats.Refused > 0 {
		t.Errorf("%d messages were blamed for what the cluster did", stats.Refused)
	}
	s.expect(j.outcome(), true)
	if c.once {
		s.expectOnce(s.hear(c.member(t, s.name, "later"), time.Minute))
	}
}

// steady enqueues the given number of messages a second until the returned function is called.
func (s *scene) steady(rate int) (stop func()) {
	done := make(chan struct{})
	var run sync.WaitGroup
	run.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.enqueue(rate / 50)
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); run.Wait() })
}

// listen consumes until the returned function is called.
func (s *scene) listen(c postrider.Consumer, j *judge) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
			j.receive(m)
			return nil
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("consumer: %v", err)
		}
		_ = c.Close()
	})
	s.t.Cleanup(stop)
	return stop
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func authority(t *testing.T) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(need.Env(t, "POSTRIDER_TEST_CA", "a server @secure"), "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: pool}
}

// nodeAt returns the node that listens on a port.
func nodeAt(t *testing.T, port string, nodes []string) string {
	t.Helper()
	for _, node := range nodes {
		text, err := os.ReadFile(filepath.Join(need.Env(t, "POSTRIDER_SERVICES_DIR", node), node, "port"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(text)) == port {
			return node
		}
	}
	t.Fatalf("no node listens on port %s", port)
	return ""
}

// natsLeader returns the node that leads the stream of a subject.
func natsLeader(t *testing.T, subject string) string {
	t.Helper()
	variable, instance, options := "POSTRIDER_TEST_NATS_CLUSTER", "", []nats.Option(nil)
	if os.Getenv("POSTRIDER_OWNED") == "nats-cluster@secure" {
		variable, instance = "POSTRIDER_TEST_NATS_CLUSTER_SECURE", "@secure"
		options = []nats.Option{nats.Secure(authority(t)), nats.UserInfo("postrider", "secret")}
	}
	conn, err := nats.Connect(need.Env(t, variable, "nats-cluster"), options...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	name, err := js.StreamNameBySubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return "nats-cluster" + strings.TrimPrefix(stream.CachedInfo().Cluster.Leader, "n") + instance
}

// redisPrimary returns the cluster node that has a stream.
func redisPrimary(t *testing.T, stream string) string {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(need.Env(t, "POSTRIDER_TEST_REDIS_CLUSTER", "redis-cluster"), "rediss://"), "/0")
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(address, ","), Username: "postrider", Password: "secret", TLSConfig: authority(t),
	})
	defer func() { _ = c.Close() }()
	node, err := c.MasterForKey(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(node.Options().Addr, ":")
	return nodeAt(t, port, nodes("redis-cluster", 1, 6))
}

// watchedPrimary returns the primary according to the sentinels.
func watchedPrimary(t *testing.T, _ string) string {
	t.Helper()
	_, address, _ := strings.Cut(strings.TrimSuffix(need.Env(t, "POSTRIDER_TEST_REDIS_SENTINEL", "redis-sentinel"), "/0"), "@")
	sentinel, _, _ := strings.Cut(address, ",")
	c := redis.NewSentinelClient(&redis.Options{Addr: sentinel, Password: "watch"})
	defer func() { _ = c.Close() }()
	primary, err := c.GetMasterAddrByName(t.Context(), "shop").Result()
	if err != nil {
		t.Fatal(err)
	}
	return nodeAt(t, primary[1], nodes("redis-sentinel", 1, 3))
}

// rabbitmqLeader returns the node that leads a queue.
func rabbitmqLeader(t *testing.T, queue string) string {
	t.Helper()
	var queues []struct{ Name, Leader string }
	if err := json.Unmarshal([]byte(clusterctl(t, "-q", "list_queues", "name", "leader", "--formatter", "json")), &queues); err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		if q.Name == queue {
			node, _, _ := strings.Cut(strings.TrimPrefix(q.Leader, "postrider"), "@")
			return "rabbitmq-cluster" + node
		}
	}
	t.Fatalf("there is no queue %s", queue)
	return ""
}

func clusterctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(need.Env(t, "POSTRIDER_TEST_RABBITMQCTL_CLUSTER", "rabbitmq-cluster"), args...).Output()
	if err != nil {
		t.Fatalf("rabbitmqctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}
