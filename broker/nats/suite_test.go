package nats_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

func TestSuite(t *testing.T) {
	runSuite(t, false)
}

func runSuite(t *testing.T, atomically bool) {
	const service = "nats@crash"
	need.Own(t, service)
	server := strings.TrimPrefix(need.Env(t, "POSTRIDER_TEST_NATS", service), "nats://")
	one := "" // the stream of all subjects, for publishers that use a single stream
	if atomically {
		one = fmt.Sprintf("suite-%d", time.Now().UnixNano())
		addStreamNamed(t, "nats://"+server, one, one+".>")
	}
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		harness := brokertest.Harness{
			Server: server,
			Create: func(t *testing.T) string {
				if atomically {
					return fmt.Sprintf("%s.%d", one, names.Add(1))
				}
				return create(t, "nats://"+server, false, 1)
			},
			Publisher: func(t *testing.T, address string) postrider.Publisher {
				return publisher(t, nats.Config{URL: "nats://restricted:restricted@" + address, Stream: one, Atomic: atomically})
			},
			Consumer: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				return consumer(t, nats.Config{
					URL: "nats://" + server, Name: name, Group: strings.ReplaceAll(group+"-"+name, ".", "_"), InFlight: limit,
				})
			},
			Burying: func(t *testing.T, name, group, dead string) postrider.Consumer {
				return consumer(t, nats.Config{
					URL: "nats://" + server, Name: name, Group: strings.ReplaceAll(group+"-"+name, ".", "_"), Attempts: 2, DeadLetter: dead,
				})
			},
			Plain: func(t *testing.T, name string, bodies ...string) {
				js := admin(t, "nats://"+server)
				for _, body := range bodies {
					if _, err := js.Publish(t.Context(), name, []byte(body)); err != nil {
						t.Fatal(err)
					}
				}
			},
			Missing: func(t *testing.T) (string, func()) {
				name := fmt.Sprintf("missing.%d.%d", time.Now().UnixNano(), names.Add(1))
				return name, func() {
					if atomically {
						addSubject(t, "nats://"+server, one, name)
					} else {
						addStreamNamed(t, "nats://"+server, strings.ReplaceAll(name, ".", "_"), name)
					}
				}
			},
			Forbidden: func(*testing.T) (string, func()) { return "forbidden.subject", nil },
			Restart:   func(t *testing.T) { need.Restart(t, service) },
			Abilities: brokertest.Abilities{
				NamesByType:    true,
				MaxPayload:     3 << 19, // a server accepts 1 MiB including headers
				NoName:         "a..b",
				OneLineHeaders: true,
				Dedup:          true,
				Recalls:        true,
			},
		}
		if !atomically { // atomic publishers have one stream, or are not affected
			harness.Full = func(t *testing.T) (string, func()) {
				name := addStream(t, "nats://"+server, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 1, jetstream.DiscardNew })
				js := admin(t, "nats://"+server)
				if _, err := js.Publish(t.Context(), name, nil); err != nil {
					t.Fatal(err)
				}
				return name, func() {
					if _, err := js.UpdateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			harness.Member = func(t *testing.T, name, group string, limit int) postrider.Consumer {
				return consumer(t, nats.Config{
					URL: "nats://" + server, Name: name, Group: strings.ReplaceAll(group+"-"+name, ".", "_"), InFlight: limit,
					AckWait: time.Second,
				})
			}
		}
		return harness
	})
}

var names atomic.Int64

// create creates a stream through the driver and returns its subject.
func create(t testing.TB, url string, atomically bool, replicas int) string {
	t.Helper()
	driver, err := broker.Lookup("nats")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test.%d.%d", time.Now().UnixNano(), names.Add(1))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	settings := &broker.Settings{URL: url, Values: map[string]string{
		"replicas": fmt.Sprint(replicas), "atomic": fmt.Sprint(atomically), "stream": streamOf(name, atomically),
	}}
	if err := driver.Create(ctx, settings, name); err != nil {
		t.Fatal(err)
	}
	removeAfter(t, url, name)
	return name
}

// streamOf returns the stream that a publisher of atomic batches requires.
func streamOf(subject string, atomically bool) string {
	if !atomically {
		return ""
	}
	return strings.ReplaceAll(subject, ".", "_")
}

func publisher(t testing.TB, c nats.Config) *nats.Publisher {
	t.Helper()
	p, err := nats.NewPublisher(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func consumer(t testing.TB, c nats.Config) *nats.Consumer {
	t.Helper()
	con, err := nats.NewConsumer(c)
	if err != nil {
		t.Fatal(err)
	}
	return con
}

func TestSuiteAtomic(t *testing.T) {
	runSuite(t, true)
}
