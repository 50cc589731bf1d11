package kafka

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/internal/need"
)

func server(t testing.TB) string { return need.Env(t, "POSTRIDER_TEST_KAFKA", "kafka") }

// to returns a dialer that always connects to the address, whatever addresses the brokers
// advertise.
func to(address string) dialFunc {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

func settings(address string, values map[string]string) *broker.Settings {
	return &broker.Settings{URL: "kafka://" + address, Values: values, Dial: to(address)}
}

func driver(t testing.TB) broker.Driver {
	t.Helper()
	d, err := broker.Lookup("kafka")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newName() string { return "test-" + postrider.NewID().String() }

// newTopic creates a topic for a test.
func newTopic(t testing.TB, values map[string]string) string {
	t.Helper()
	name := newName()
	makeTopic(t, name, values)
	return name
}

func makeTopic(t testing.TB, name string, values map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := driver(t).Create(ctx, settings(server(t), values), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, name) })
	// The server confirms the creation before all of its parts know the topic.
	a, err := newAdmin(Config{URL: "kafka://" + server(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for {
		if found, err := a.ListTopics(ctx, name); err == nil && found.Error() == nil && len(found) == 1 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not get to know %s", name)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func remove(t testing.TB, topic string) {
	a, err := newAdmin(Config{URL: "kafka://" + server(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := a.DeleteTopic(ctx, topic); err != nil {
		t.Logf("%s is left behind: %v", topic, err)
	}
}

// forbid forbids all users to write to a topic, until the returned function is called.
func forbid(t *testing.T, topic string) (allow func()) {
	t.Helper()
	a, err := newAdmin(Config{URL: "kafka://" + server(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	rules := func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral)
	}
	deny := rules().Operations(kadm.OpWrite).Deny("User:*").DenyHosts("*")
	for _, rule := range []*kadm.ACLBuilder{rules().Operations(kadm.OpAll).Allow("User:*").AllowHosts("*"), deny} {
		done, err := a.CreateACLs(t.Context(), rule)
		if err == nil && len(done) == 1 && errors.Is(done[0].Err, kerr.SecurityDisabled) {
			t.Skip("n/a: this server knows no rights; dev/services wipe kafka, and up again, makes one that does")
		}
		if err != nil || len(done) != 1 || done[0].Err != nil {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	return func() {
		if _, err := a.DeleteACLs(t.Context(), deny); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSuite(t *testing.T) { testSuite(t, false) }

func TestSuiteOnce(t *testing.T) { testSuite(t, true) }

// as publishes what has no sender under a sender of its own, like a relay.
type as struct {
	*Publisher
	sender broker.Sender
}

func (p as) Publish(ctx context.Context, msgs []postrider.Message) []error {
	if _, ok := broker.SenderOf(ctx); !ok {
		ctx = broker.WithSender(ctx, p.sender)
	}
	return p.Publisher.Publish(ctx, msgs)
}

func testSuite(t *testing.T, once bool) {
	const service = "kafka@crash"
	need.Own(t, service)
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		address := server(t)
		restart := func(t *testing.T) { need.Restart(t, service) }
		if once {
			// A single server that is killed right after a commit may not end the transaction at all
			// partitions when it starts again, and nothing behind it is visible then.
			restart = nil
		}
		consume := func(t *testing.T, name, group string, limit int) postrider.Consumer {
			c, err := NewConsumer(Config{URL: "kafka://" + address, Name: name, Group: name + "-" + group, InFlight: limit})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		return brokertest.Harness{
			Server: address,
			Plain: func(t *testing.T, name string, bodies ...string) {
				c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic(name))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				records := make([]*kgo.Record, len(bodies))
				for i, body := range bodies {
					records[i] = kgo.StringRecord(body)
				}
				if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
					t.Fatal(err)
				}
			},
			// Offsets are committed per partition. With 12 partitions, no later message shares a
			// partition with the key of the message that the suite leaves unfinished.
			Create: func(t *testing.T) string { return newTopic(t, map[string]string{"partitions": "12"}) },
			Publisher: func(t *testing.T, address string) postrider.Publisher {
				p, err := driver(t).Open(settings(address, map[string]string{"once": strconv.FormatBool(once)}))
				if err != nil {
					t.Fatal(err)
				}
				if !once {
					return p
				}
				return as{p.(*Publisher), broker.Sender{Name: newName(), Term: 1}}
			},
			Elsewhere: func(t *testing.T) postrider.Publisher {
				p, err := driver(t).Open(settings(address, map[string]string{"source": "/elsewhere"}))
				if err != nil {
					t.Fatal(err)
				}
				return p
			},
			Consumer: consume,
			Member:   consume,
			Burying: func(t *testing.T, name, group, dead string) postrider.Consumer {
				c, err := NewConsumer(Config{URL: "kafka://" + address, Name: name, Group: name + "-" + group, Attempts: 2, DeadLetter: dead})
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			Restart: restart,
			Missing: func(t *testing.T) (string, func()) {
				name := newName()
				return name, func() { makeTopic(t, name, nil) }
			},
			Forbidden: func(t *testing.T) (string, func()) {
				name := newTopic(t, nil)
				return name, forbid(t, name)
			},
			// The brokers need 15 s to detect a dead member.
			Abilities: brokertest.Abilities{MaxPayload: 1_500_000, NoName: "no such/topic", SlowTakeover: true, Recalls: once},
		}
	})
}
