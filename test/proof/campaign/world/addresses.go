package world

import (
	"fmt"
	"slices"
	"strings"
)

// ProducerDSN is the database for producers, through a proxy.
func (w *World) ProducerDSN() string { return w.dsn(ToProducers, "postrider", "producer") }

// PooledDSN is the database for producers, through PgBouncer and then a proxy.
func (w *World) PooledDSN() string { return w.dsn(Pooler, "campaign", "producer") }

// ConsumerDSN is the database for consumers, through a proxy.
func (w *World) ConsumerDSN() string { return w.dsn(ToConsumers, "postrider", "consumer") }

// AdminDSN is the primary as it is now, through a proxy that follows failovers and that no fault touches otherwise.
func (w *World) AdminDSN() string { return w.dsn(admin, "postrider", "admin") }

func (w *World) dsn(proxy, database, application string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&connect_timeout=5&application_name=%s",
		w.proxies[proxy].Address(), database, application)
}

// Broker is the direct address of a broker as a URL that its driver understands. HTTP has none.
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

// relayURL is the address of a destination for relays, through proxies.
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

// ReceiverAddress is where the HTTP receiver must listen. Relays post to it through a proxy, under the path /hooks/{name}.
func (w *World) ReceiverAddress() string { return w.receiver }

func (w *World) destinations() []string {
	return slices.DeleteFunc(Destinations(), func(d string) bool { return slices.Contains(w.Options.Without, d) })
}
