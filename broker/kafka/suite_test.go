package kafka

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/internal/need"
)

func server(t testing.TB) string { return need.Env(t, "POSTRIDER_TEST_KAFKA", "kafka") }

// to returns a way to connect that ends at the address, whatever the brokers say about where they are.
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

// newTopic makes a topic of its own for a test.
func newTopic(t testing.TB, values map[string]string) string {
	t.Helper()
	name := "test-" + postrider.Event("t", "", "", nil).ID.String()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := driver(t).Create(ctx, settings(server(t), values), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, name) })
	// The server says yes before all of it knows the topic.
	a, err := newAdmin(Config{URL: "kafka://" + server(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for {
		if found, err := a.ListTopics(ctx, name); err == nil && found.Error() == nil && len(found) == 1 {
			return name
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

func TestSuite(t *testing.T) {
	const service = "kafka@crash"
	need.Own(t, service)
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		address := server(t)
		consume := func(t *testing.T, name, group string, limit int) postrider.Consumer {
			c, err := NewConsumer(Config{URL: "kafka://" + address, Name: name, Group: name + "-" + group, InFlight: limit})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		return brokertest.Harness{
			Server: address,
			// Offsets are remembered for whole partitions. With this many, the key of the message that the suite leaves
			// unfinished shares its partition with none behind it.
			Create: func(t *testing.T) string { return newTopic(t, map[string]string{"partitions": "12"}) },
			Publisher: func(t *testing.T, address string) postrider.Publisher {
				p, err := driver(t).Open(settings(address, nil))
				if err != nil {
					t.Fatal(err)
				}
				return p
			},
			Consumer: consume,
			Member:   consume,
			Restart:  func(t *testing.T) { need.Restart(t, service) },
			// The brokers take a quarter of a minute to find out that a member is dead.
			Abilities: brokertest.Abilities{MaxPayload: 1_500_000, Missing: "no-such-topic", SlowTakeover: true},
		}
	})
}
