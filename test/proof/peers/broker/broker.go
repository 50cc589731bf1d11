// Package broker is the receiving side of the comparison, the same for every peer. It creates
// topics, reads what arrives there with the broker's own client, and publishes for those peers that
// leave publishing to the user.
package broker

import (
	"context"
	"fmt"
	"strings"
)

// Kinds lists the brokers of the comparison.
var Kinds = []string{"kafka", "nats", "rabbitmq"}

// Message is a message to publish.
type Message struct {
	ID      string
	Key     string
	Payload []byte
}

// Broker is a client of one server.
type Broker interface {
	// Create creates an empty topic.
	Create(ctx context.Context, topic string) error
	// Delete deletes a topic with everything in it.
	Delete(ctx context.Context, topic string) error
	// Receive calls f with every payload that arrives from now on, in the order of each key, until
	// stop is called.
	Receive(ctx context.Context, topic string, f func(payload []byte)) (stop func(), err error)
	// Send returns once the broker has confirmed all messages. It sends many before it waits for
	// the first confirmation. It is safe for concurrent use.
	Send(ctx context.Context, topic string, msgs ...Message) error
	// Close closes the connection.
	Close()
}

// Open connects to a broker of one of the Kinds.
func Open(ctx context.Context, kind, address string) (Broker, error) {
	switch kind {
	case "kafka":
		return openKafka(address)
	case "nats":
		return openNATS(address)
	case "rabbitmq":
		return openRabbitMQ(address)
	}
	return nil, fmt.Errorf("broker: %q is none of %s", kind, strings.Join(Kinds, ", "))
}
