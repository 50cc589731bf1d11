package failures_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	_ "github.com/postrider/postrider/broker/kafka"
	_ "github.com/postrider/postrider/broker/nats"
	_ "github.com/postrider/postrider/broker/pulsar"
	_ "github.com/postrider/postrider/broker/rabbitmq"
	_ "github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
)

// server is a real broker.
type server struct {
	driver  string
	service string // name in dev/services
	values  map[string]string
}

var (
	rabbitServer = server{driver: "rabbitmq", service: "rabbitmq"}
	natsServer   = server{driver: "nats", service: "nats"}
	kafkaServer  = server{driver: "kafka", service: "kafka", values: map[string]string{"partitions": "2"}}
	redisServer  = server{driver: "redis", service: "redis"}
	pulsarServer = server{driver: "pulsar", service: "pulsar"}
)

// address returns the address of the server, without a scheme.
func (b server) address(t *testing.T) string {
	t.Helper()
	address := need.Env(t, "POSTRIDER_TEST_"+strings.ToUpper(b.driver), b.service)
	if _, rest, ok := strings.Cut(address, "://"); ok {
		return rest
	}
	return address
}

func (b server) settings(t *testing.T, more map[string]string) (broker.Driver, *broker.Settings) {
	t.Helper()
	d, err := broker.Lookup(b.driver)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	maps.Copy(values, b.values)
	maps.Copy(values, more)
	return d, &broker.Settings{URL: d.Schemes[0] + "://" + b.address(t), Values: values, Logger: quiet}
}

var lastName atomic.Int64

func newName() string {
	return fmt.Sprintf("failures-%d-%d-%d", os.Getpid(), time.Now().UnixMilli(), lastName.Add(1))
}

// create creates a queue, stream or topic, which is removed when the test ends.
func (b server) create(t *testing.T, name string) string {
	t.Helper()
	d, settings := b.settings(t, nil)
	if d.Create != nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := d.Create(ctx, settings, name); err != nil {
			t.Fatalf("creating %s: %v", name, err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := b.remove(ctx, t, name); err != nil {
			t.Errorf("removing %s: %v", name, err)
		}
	})
	return name
}

func (b server) remove(ctx context.Context, t *testing.T, name string) error {
	switch b.driver {
	case "rabbitmq":
		conn, err := amqp.Dial("amqp://" + b.address(t))
		if err != nil {
			return err
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err == nil {
			_, err = ch.QueueDelete(name, false, false, false)
		}
		return err
	case "nats":
		conn, err := client.Connect(b.address(t))
		if err != nil {
			return err
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err == nil {
			err = js.DeleteStream(ctx, name)
		}
		return err
	case "kafka":
		conn, err := kgo.NewClient(kgo.SeedBrokers(b.address(t)))
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = kadm.NewClient(conn).DeleteTopic(ctx, name)
		return err
	case "redis":
		return redisClient(t, b).Del(ctx, name).Err()
	case "pulsar":
		administer(t, http.MethodDelete, "persistent/public/default/"+name+"?force=true", "")
	}
	return nil
}

func (b server) publisher(t *testing.T) postrider.Publisher {
	t.Helper()
	d, settings := b.settings(t, nil)
	p, err := d.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// receive receives everything sent to a name until the test ends.
func (b server) receive(t *testing.T, name string) *arrivals {
	t.Helper()
	d, settings := b.settings(t, map[string]string{"name": name, "group": "failures", "in_flight": "256"})
	if b.driver == "rabbitmq" {
		delete(settings.Values, "group")
	}
	c, err := d.Subscribe(settings)
	if err != nil {
		t.Fatal(err)
	}
	a := new(arrivals)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, func(_ context.Context, m postrider.Message) error {
			a.add(m.Payload)
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, c.Close()); err != nil {
			t.Errorf("consumer: %v", err)
		}
	})
	return a
}

// down is a way in which one name of a broker accepts nothing while others do.
type down struct {
	server
	// begin creates such a name, and returns a function that repairs it.
	begin func(t *testing.T, b server) (name string, heal func())
}

var downs = map[string]down{
	"RabbitMQ queue full":         {rabbitServer, fullQueue},
	"RabbitMQ queue missing":      {rabbitServer, missing},
	"NATS stream full":            {natsServer, fullStream},
	"NATS subject without stream": {natsServer, missing},
	"Kafka topic missing":         {kafkaServer, missing},
	"Kafka topic forbidden":       {kafkaServer, forbiddenTopic},
	"Redis key of another kind":   {redisServer, wrongKind},
	"Pulsar namespace missing":    {pulsarServer, missingNamespace},
	"Pulsar topic missing":        {pulsarServer, missingTopic},
	"Pulsar topic ended":          {pulsarServer, endedTopic},
}

// missing returns a name that does not exist yet.
func missing(t *testing.T, b server) (string, func()) {
	name := newName()
	return name, func() { b.create(t, name) }
}

// fullQueue is full by bytes, so that it has room for everything once it is purged.
func fullQueue(t *testing.T, b server) (string, func()) {
	t.Helper()
	conn, err := amqp.Dial("amqp://" + b.address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	name := newName()
	const limit = 48 << 20
	if _, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-max-length-bytes": limit, "x-overflow": "reject-publish"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ch.QueueDelete(name, false, false, false) })
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	filler := make([]byte, 8<<20)
	for range limit/len(filler) + 2 {
		d, err := ch.PublishWithDeferredConfirm("", name, false, false, amqp.Publishing{Body: filler})
		if err != nil {
			t.Fatal(err)
		}
		if !d.Wait() {
			return name, func() {
				if _, err := ch.QueuePurge(name, false); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Fatal("the queue does not get full")
	return "", nil
}

func fullStream(t *testing.T, b server) (string, func()) {
	t.Helper()
	conn, err := client.Connect(b.address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	name := newName()
	cfg := jetstream.StreamConfig{Name: name, Subjects: []string{name}, MaxMsgs: 1, Discard: jetstream.DiscardNew}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	filler := numbered(name, "filler", 0)
	if _, err := js.Publish(t.Context(), name, filler.Payload); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = js.DeleteStream(context.WithoutCancel(t.Context()), name) })
	return name, func() {
		stream, err := js.Stream(t.Context(), name)
		if err == nil {
			err = stream.Purge(t.Context())
		}
		cfg.MaxMsgs = 0
		if _, more := js.UpdateStream(t.Context(), cfg); errors.Join(err, more) != nil {
			t.Fatal(err, more)
		}
	}
}

func forbiddenTopic(t *testing.T, b server) (string, func()) {
	t.Helper()
	conn, err := kgo.NewClient(kgo.SeedBrokers(b.address(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	admin := kadm.NewClient(conn)
	name := b.create(t, newName())
	rules := func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics(name).ResourcePatternType(kadm.ACLPatternLiteral)
	}
	deny := rules().Operations(kadm.OpWrite).Deny("User:*").DenyHosts("*")
	allow := rules().Operations(kadm.OpAll).Allow("User:*").AllowHosts("*")
	t.Cleanup(func() {
		for _, rule := range []*kadm.ACLBuilder{allow, deny} {
			_, _ = admin.DeleteACLs(context.WithoutCancel(t.Context()), rule)
		}
	})
	for _, rule := range []*kadm.ACLBuilder{allow, deny} {
		done, err := admin.CreateACLs(t.Context(), rule)
		if err == nil && len(done) == 1 && errors.Is(done[0].Err, kerr.SecurityDisabled) {
			t.Skip("n/a: this server knows no rights; dev/services wipe kafka, and up again, makes one that does")
		}
		if err != nil || len(done) != 1 || done[0].Err != nil {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	return name, func() {
		if _, err := admin.DeleteACLs(t.Context(), deny); err != nil {
			t.Fatal(err)
		}
	}
}

func redisClient(t *testing.T, b server) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL("redis://" + b.address(t))
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wrongKind(t *testing.T, b server) (string, func()) {
	t.Helper()
	c, name := redisClient(t, b), newName()
	if err := c.Set(t.Context(), name, "not a stream", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Del(context.WithoutCancel(t.Context()), name) })
	return name, func() { c.Del(t.Context(), name) }
}

// administer calls Pulsar's admin API.
func administer(t *testing.T, method, path, body string) {
	t.Helper()
	address := need.Env(t, "POSTRIDER_TEST_PULSAR_HTTP", "pulsar") + "/admin/v2/" + path
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, address, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
}

func missingNamespace(t *testing.T, _ server) (string, func()) {
	namespace := "public/" + newName()
	return namespace + "/x", func() { makeNamespace(t, namespace) }
}

func makeNamespace(t *testing.T, namespace string) {
	t.Helper()
	administer(t, http.MethodPut, "namespaces/"+namespace, "{}")
	t.Cleanup(func() { administer(t, http.MethodDelete, "namespaces/"+namespace+"?force=false", "") })
	t.Cleanup(func() { administer(t, http.MethodDelete, "persistent/"+namespace+"/x?force=true", "") })
}

// missingTopic is in a namespace without automatic topic creation.
func missingTopic(t *testing.T, _ server) (string, func()) {
	t.Helper()
	namespace := "public/" + newName()
	makeNamespace(t, namespace)
	administer(t, http.MethodPost, "namespaces/"+namespace+"/autoTopicCreation", `{"allowAutoTopicCreation":false}`)
	return namespace + "/x", func() { administer(t, http.MethodPut, "persistent/"+namespace+"/x", "") }
}

// endedTopic is terminated: it accepts nothing until it is created again.
func endedTopic(t *testing.T, b server) (string, func()) {
	t.Helper()
	name := b.create(t, newName())
	administer(t, http.MethodPost, "persistent/public/default/"+name+"/terminate", "")
	return name, func() { administer(t, http.MethodDelete, "persistent/public/default/"+name+"?force=true", "") }
}

// TestNameDown tests a name of a real broker that accepts nothing. Messages to another name arrive,
// none becomes a dead letter, and the database has the cause. When the name is repaired, its
// messages follow, in order per key and exactly once.
func TestNameDown(t *testing.T) {
	t.Parallel()
	for _, what := range slices.Sorted(maps.Keys(downs)) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := downs[what]
			s := newScene(t, newest(t), postgres.Layout{})
			good := d.create(t, newName())
			bad, heal := d.begin(t, d.server)
			s.nameDown(d.server, good, bad, 2, pick(2000, 20_000), heal)
		})
	}
}

// nameDown sends messages to two names, one in share of them to the bad one, and returns how long
// those to the good one took.
func (s *scene) nameDown(b server, good, bad string, share, all int, heal func()) time.Duration {
	t := s.t
	t.Helper()
	var msgs []postrider.Message
	for i := range all {
		name, key := good, "g"
		if i%share == 0 {
			name, key = bad, "b"
		}
		msgs = append(msgs, numbered(name, key+strconv.Itoa(i/share%100), i))
	}
	s.enqueueAll(msgs)
	wantBad := (all + share - 1) / share
	here := b.receive(t, good)
	began := time.Now()
	s.start(b.publisher(t), relay.Config{})
	s.eventually(3*time.Minute, "all messages to the good name have arrived", func() bool { n, _ := here.count(); return n == all-wantBad })
	took := time.Since(began)
	s.eventually(30*time.Second, "the cause is in the database", func() bool { return s.problem(bad) != nil })
	s.eventually(time.Minute, "all messages to the bad name are deferred", func() bool {
		deferred := 0
		for _, n := range s.count() {
			deferred += n
		}
		return deferred == wantBad
	})
	if counts := s.count(); counts[feeds.StatusHeld] == 0 || counts[feeds.StatusDead] > 0 {
		t.Errorf("deferred are %v, want held ones, and none dead", counts)
	}
	if p := s.problem(bad); p == nil || p.Cause == "" || !p.Over.IsZero() {
		t.Errorf("problem %+v", p)
	} else {
		t.Logf("%d arrived in %v; %q: %s", all-wantBad, took, bad, p.Cause)
	}
	heal()
	healed := time.Now()
	there := b.receive(t, bad)
	s.eventually(3*time.Minute, "the held ones have followed", func() bool { n, _ := there.count(); return n == wantBad })
	t.Logf("%d followed in %v", wantBad, time.Since(healed))
	s.eventually(30*time.Second, "nothing is deferred", func() bool { return len(s.count()) == 0 })
	s.eventually(30*time.Second, "the problem is over", func() bool { p := s.problem(bad); return p != nil && !p.Over.IsZero() })
	for _, a := range []*arrivals{here, there} {
		a.checkOrder(t)
		if _, repeated := a.count(); repeated > 0 {
			t.Errorf("%d were repeated", repeated)
		}
	}
	return took
}

// TestOutOfMemory tests a Redis without memory, which rejects everything. No message becomes a dead
// letter or is sent twice, the database has the cause, and all arrive in order once there is room.
func TestOutOfMemory(t *testing.T) {
	need.Own(t, "redis@crash")
	b := redisServer
	c := redisClient(t, b)
	room := func(bytes string) {
		if err := c.ConfigSet(context.WithoutCancel(t.Context()), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { room("0") })
	s := newScene(t, newest(t), postgres.Layout{})
	name := b.create(t, newName())
	room("1")
	all := pick(2000, 20_000)
	s.start(b.publisher(t), relay.Config{})
	var msgs []postrider.Message
	for i := range all {
		msgs = append(msgs, numbered(name, "k"+strconv.Itoa(i%100), i))
	}
	s.enqueueAll(msgs)
	s.eventually(5*time.Second, "the cause is in the database", func() bool {
		all, err := s.admin.Problems(t.Context(), "default")
		return err == nil && slices.ContainsFunc(all, func(p feeds.Problem) bool { return strings.Contains(p.Cause, "OOM") })
	})
	time.Sleep(pick(2*time.Second, 20*time.Second)) // long enough for messages to use up their attempts
	if counts := s.count(); counts[feeds.StatusDead] > 0 {
		t.Errorf("deferred are %v, want none dead", counts)
	}
	room("0")
	here := b.receive(t, name)
	s.eventually(time.Minute, "all have arrived", func() bool { n, _ := here.count(); return n == all })
	here.checkOrder(t)
	if _, repeated := here.count(); repeated > 0 {
		t.Errorf("%d were repeated", repeated)
	}
}

// problem returns what the database records about a name, or nil.
func (s *scene) problem(name string) *feeds.Problem {
	s.t.Helper()
	all, err := s.admin.Problems(s.t.Context(), "default")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range all {
		if p.Name == name || strings.HasSuffix(p.Name, "/"+name) { // Pulsar's names are longer
			return &p
		}
	}
	return nil
}

// TestFullQueue checks that a full queue slows messages to another one by at most half.
func TestFullQueue(t *testing.T) {
	need.Alone(t, "measures how long messages take")
	all := pick(4000, 100_000)
	for _, share := range []int{2, 100} {
		t.Run(fmt.Sprintf("1 in %d", share), func(t *testing.T) {
			b := rabbitServer
			control := newScene(t, newest(t), postgres.Layout{})
			usual := control.bothUp(b, b.create(t, newName()), b.create(t, newName()), share, all)
			s := newScene(t, newest(t), postgres.Layout{})
			bad, heal := fullQueue(t, b)
			took := s.nameDown(b, b.create(t, newName()), bad, share, all, heal)
			t.Logf("beside a full queue %v, else %v", took, usual)
			if took > usual+usual/2+250*time.Millisecond {
				t.Errorf("beside a full queue messages took %v, else %v", took, usual)
			}
		})
	}
}

// bothUp sends messages to two names, one in share of them to the second, and returns how long
// those to the first took.
func (s *scene) bothUp(b server, first, second string, share, all int) time.Duration {
	s.t.Helper()
	var msgs []postrider.Message
	for i := range all {
		msgs = append(msgs, numbered(cmp.Or(map[bool]string{true: second}[i%share == 0], first), "k"+strconv.Itoa(i/share%100), i))
	}
	s.enqueueAll(msgs)
	here := b.receive(s.t, first)
	began := time.Now()
	stop := s.start(b.publisher(s.t), relay.Config{})
	want := all - (all+share-1)/share
	s.eventually(3*time.Minute, "all messages to the first name have arrived", func() bool { n, _ := here.count(); return n == want })
	took := time.Since(began)
	stop()
	return took
}
