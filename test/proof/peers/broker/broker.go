// Package broker is the receiving side of the comparison, the same for every peer: it makes the places that messages go
// to, reads what arrives there with the broker's own client, and sends for those peers that leave sending to the user.
package broker

import (
	"context"
	"fmt"
	"strings"
)

// Kinds are the brokers that the peers are compared on.
var Kinds = []string{"kafka", "nats", "rabbitmq"}

// Message is one message on its way to a broker.
type Message struct {
	ID      string
	Key     string
	Payload []byte
}

// Broker is one server.
type Broker interface {
	// Create makes an empty place for messages.
	Create(ctx context.Context, topic string) error
	// Delete removes it with all that it holds.
	Delete(ctx context.Context, topic string) error
	// Receive calls f with every payload that arrives from now on, in the order of each key, until stop is called.
	Receive(ctx context.Context, topic string, f func(payload []byte)) (stop func(), err error)
	// Send returns once the broker has confirmed all messages. Many are sent before the first confirmation is waited for.
	// It may be called concurrently.
	Send(ctx context.Context, topic string, msgs ...Message) error
	// Close ends the connection.
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
