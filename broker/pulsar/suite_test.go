package pulsar

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/internal/need"
)

var names atomic.Int64

// settings returns a driver and the settings for the server at an address, or for the one under test if it is empty.
func settings(t testing.TB, address string, values map[string]string) (broker.Driver, *broker.Settings) {
	t.Helper()
	server := need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar")
	if address != "" {
		server = "pulsar://" + address
	}
	d, err := broker.ForURL(server)
	if err != nil {
		t.Fatal(err)
	}
	return d, &broker.Settings{URL: server, Values: values}
}

func createTopic(t testing.TB) string {
	t.Helper()
	d, s := settings(t, "", nil)
	name := fmt.Sprintf("test-%d-%d", os.Getpid(), names.Add(1))
	if err := d.Create(t.Context(), s, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSuite(t *testing.T) {
	const service = "pulsar@crash"
	if need.IsLong() {
		need.Own(t, service)
	}
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		subscribe := func(t *testing.T, name, group string, limit int) postrider.Consumer {
			d, s := settings(t, "", map[string]string{"name": name, "group": group, "in_flight": fmt.Sprint(limit)})
			c, err := d.Subscribe(s)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		return brokertest.Harness{
			Server: strings.TrimPrefix(need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar"), "pulsar://"),
			Create: func(t *testing.T) string { return createTopic(t) },
			Publisher: func(t *testing.T, address string) postrider.Publisher {
				d, s := settings(t, address, nil)
				p, err := d.Open(s)
				if err != nil {
					t.Fatal(err)
				}
				return p
			},
			Consumer: subscribe,
			Member:   subscribe,
			Restart:  func(t *testing.T) { need.Restart(t, service) },
			Abilities: brokertest.Abilities{
				MaxPayload:  6 << 20,
				Missing:     "persistent://no-such/tenant/x",
				SlowRestart: true, // half a minute
			},
		}
	})
}
