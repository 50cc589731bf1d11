package pubsub

import (
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	testSuite(t, suiteServer, os.Getenv(addressEnv), nil)
}

func TestSuiteUnordered(t *testing.T) {
	t.Parallel()
	testSuite(t, unorderedServer, unorderedServer.address, map[string]string{"unordered": "true"})
}

func testSuite(t *testing.T, server *fake, address string, values map[string]string) {
	with := func(more map[string]string) map[string]string {
		more["ack_deadline"] = "10s"
		maps.Copy(more, values)
		return more
	}
	subscribe := func(t *testing.T, more map[string]string) postrider.Consumer {
		d, s := settings(address, with(more))
		c, err := d.Subscribe(s)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	consumer := func(t *testing.T, name, _ string, limit int) postrider.Consumer {
		return subscribe(t, map[string]string{"name": name, "in_flight": fmt.Sprint(limit)})
	}
	newName := func() string { return fmt.Sprintf("test-%d", lastName.Add(1)) }
	create := func(t *testing.T) string { return createTopicAt(t, address, values) }
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		h := brokertest.Harness{
			Server: address,
			Create: create,
			Publisher: func(t *testing.T, address string) postrider.Publisher {
				d, s := settings(address, with(map[string]string{}))
				p, err := d.Open(s)
				if err != nil {
					t.Fatal(err)
				}
				return p
			},
			Plain: func(t *testing.T, name string, bodies ...string) {
				r := &pubsubpb.PublishRequest{Topic: "projects/test-project/topics/" + name}
				for _, body := range bodies {
					r.Messages = append(r.Messages, &pubsubpb.PubsubMessage{Data: []byte(body)})
				}
				if _, err := server.service.GServer.Publish(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			},
			Missing: func(t *testing.T) (string, func()) {
				name := newName()
				return name, func() { createNamed(t, address, values, name) }
			},
			Forbidden: func(t *testing.T) (string, func()) {
				name := create(t)
				topic := "projects/test-project/topics/" + name
				server.refuse(topic, status.Error(codes.PermissionDenied, "User not authorized to perform this action."))
				return name, func() { server.refuse(topic, nil) }
			},
			Consumer: consumer,
			Member: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				c := consumer(t, name, group, limit)
				c.(*Consumer).cfg.AckDeadline = time.Second // the service requires at least 10 s
				return c
			},
			Burying: func(t *testing.T, name, _, dead string) postrider.Consumer {
				return subscribe(t, map[string]string{"name": name, "attempts": "2", "dead_letter": dead})
			},
			Restart: func(*testing.T) { server.restart() },
			Abilities: brokertest.Abilities{
				MaxPayload: maxRequest,
				NoName:     "a b",
				Unordered:  values["unordered"] == "true",
			},
		}
		if h.Unordered {
			h.Burying = nil // the suite detects a dead letter by messages behind it
		}
		return h
	})
}
