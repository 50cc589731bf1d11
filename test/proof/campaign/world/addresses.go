package world

import (
	"fmt"
	"slices"
	"strings"
)

// ProducerDSN returns the address of the database for producers, through a proxy.
func (w *World) ProducerDSN() string { return w.dsn(ToProducers, "postrider", "producer") }

// PooledDSN returns the address of the database for producers, through PgBouncer and then a proxy.
func (w *World) PooledDSN() string { return w.dsn(Pooler, "campaign", "producer") }

// ConsumerDSN returns the address of the database for consumers, through a proxy.
func (w *World) ConsumerDSN() string { return w.dsn(ToConsumers, "postrider", "consumer") }

// AdminDSN returns the address of the current primary, through a proxy that follows failovers and
// is not affected by faults.
func (w *World) AdminDSN() string { return w.dsn(admin, "postrider", "admin") }

func (w *World) dsn(proxy, database, application string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&connect_timeout=5&application_name=%s",
		w.proxies[proxy].Address(), database, application)
}

// Broker returns the direct URL of a broker for its driver. HTTP has none.
func (w *World) Broker(destination string) string {
	address := func(name string) string {
		a, _ := w.services.address(w.service(name), "") // Start has read them all
		return a
	}
	switch destination {
	case Kafka:
		return "kafka://" + address(Kafka)
	case NATS:
		return fmt.Sprintf("nats://%s,nats://%s,nats://%s", address("nats1"), address("nats2"), address("nats3"))
	case RabbitMQ:
		return "amqp://guest:guest@" + address(RabbitMQ) + "/"
	case Redis:
		return "redis://" + address(Redis) + "/0"
	}
	return ""
}

// relayURL returns the URL of a destination for relays, through proxies.
func (w *World) relayURL(destination string) string {
	address := func(name string) string { return w.proxies[name].Address() }
	switch destination {
	case Kafka:
		return "kafka://" + address(Kafka)
	case NATS:
		var all []string
		for _, name := range w.BrokerProxies(NATS) {
			all = append(all, "nats://"+address(name))
		}
		return strings.Join(all, ",")
	case RabbitMQ:
		return "amqp://guest:guest@" + address(RabbitMQ) + "/"
	case Redis:
		return "redis://" + address(Redis) + "/0"
	}
	return "http://" + address(HTTP) + "/hooks/{name}"
}

// ReceiverAddress returns the listen address of the HTTP receiver. Relays post to it through a
// proxy, under the path /hooks/{name}.
func (w *World) ReceiverAddress() string { return w.receiver }

func (w *World) destinations() []string {
	return slices.DeleteFunc(Destinations(), func(d string) bool { return slices.Contains(w.Options.Without, d) })
}
