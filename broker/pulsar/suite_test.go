package pulsar

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	apache "github.com/apache/pulsar-client-go/pulsar"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/internal/need"
)

var names atomic.Int64

// settings returns a driver and the settings for the server at an address, or for the server under
// test if it is empty.
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

// administer sends a request to the broker's HTTP interface.
func administer(t testing.TB, method, path, body string) {
	t.Helper()
	address := need.Env(t, "POSTRIDER_TEST_PULSAR_HTTP", "pulsar") + "/admin/v2/" + path
	req, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		t.Errorf("%s %s: %s", method, path, answer.Status)
	}
}

var abilities = brokertest.Abilities{
	MaxPayload:  6 << 20,
	NoName:      "a/b",
	SlowRestart: true, // half a minute
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
			Plain: func(t *testing.T, name string, bodies ...string) {
				client, err := apache.NewClient(apache.ClientOptions{URL: need.Env(t, "POSTRIDER_TEST_PULSAR", "pulsar")})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				producer, err := client.CreateProducer(apache.ProducerOptions{Topic: name})
				if err != nil {
					t.Fatal(err)
				}
				defer producer.Close()
				for _, body := range bodies { // as one batch
					producer.SendAsync(t.Context(), &apache.ProducerMessage{Payload: []byte(body)},
						func(_ apache.MessageID, _ *apache.ProducerMessage, err error) {
							if err != nil {
								t.Error(err)
							}
						})
				}
				if err := producer.FlushWithCtx(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			Missing: func(t *testing.T) (string, func()) {
				namespace := fmt.Sprintf("test-%d-%d", os.Getpid(), names.Add(1))
				return "public/" + namespace + "/x", func() {
					administer(t, http.MethodPut, "namespaces/public/"+namespace, "{}")
					t.Cleanup(func() {
						administer(t, http.MethodDelete, "persistent/public/"+namespace+"/x?force=true", "")
						administer(t, http.MethodDelete, "namespaces/public/"+namespace, "")
					})
				}
			},
			// A terminated topic accepts nothing until it is created again.
			Full: func(t *testing.T) (string, func()) {
				name := createTopic(t)
				administer(t, http.MethodPost, "persistent/public/default/"+name+"/terminate", "")
				return name, func() { administer(t, http.MethodDelete, "persistent/public/default/"+name+"?force=true", "") }
			},
			Consumer: subscribe,
			Member:   subscribe,
			Burying: func(t *testing.T, name, group, dead string) postrider.Consumer {
				d, s := settings(t, "", map[string]string{"name": name, "group": group, "attempts": "2", "dead_letter": dead})
				c, err := d.Subscribe(s)
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			Restart:   func(t *testing.T) { need.Restart(t, service) },
			Abilities: abilities,
		}
	})
}
