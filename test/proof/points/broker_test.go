package points

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// destination is a case's topics at a broker.
type destination interface {
	address() (broker, url string)
	// topic returns the topic of messages, and nowhere one that does not exist until open is
	// called.
	topic() string
	nowhere() string
	open(ctx context.Context) error
	// receipts returns the payloads that the broker has accepted, in its order.
	receipts(ctx context.Context) ([]string, error)
	// left returns how many messages the consumers of the case have not acknowledged.
	left(ctx context.Context) (int, error)
}

// publisher opens a process's publisher, whose connections are watched.
func (p part) publisher(gate *tap.Gate) (postrider.Publisher, error) {
	if p.Broker == "rabbitmq" {
		return rabbitmq.NewPublisher(rabbitmq.Config{URL: p.URL, Dial: gate.Dial(tap.AMQP(nameMethod)), Logger: p.logger()})
	}
	return nats.NewPublisher(nats.Config{URL: p.URL, Dial: gate.Dial(tap.NATS(nameSubject)), Logger: p.logger()})
}

// consumer opens a process's consumer, whose connections are watched.
func (p part) consumer(topic string, gate *tap.Gate) (postrider.Consumer, error) {
	if p.Broker == "rabbitmq" {
		return rabbitmq.NewConsumer(rabbitmq.Config{URL: p.URL, Dial: gate.Dial(tap.AMQP(nameMethod)), Name: topic, Logger: p.logger()})
	}
	return nats.NewConsumer(nats.Config{
		URL: p.URL, Dial: gate.Dial(tap.NATS(nameSubject)), Name: topic, Group: "points", AckWait: lease, Logger: p.logger(),
	})
}

// stream is a destination at NATS.
type stream struct {
	js   jetstream.JetStream
	name string
}

// stream creates a stream in memory, with a short deduplication window so that duplicates are
// visible.
func (s *servers) stream(t *testing.T, name string) destination {
	t.Helper()
	_, err := s.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".>"}, Storage: jetstream.MemoryStorage, Duplicates: forgets,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.js.DeleteStream(context.Background(), name) })
	return stream{s.js, name}
}

func (s stream) address() (string, string) { return "nats", os.Getenv("POSTRIDER_TEST_NATS") }
func (s stream) topic() string             { return s.name + ".here" }
func (s stream) nowhere() string           { return "nowhere." + s.name }

func (s stream) open(ctx context.Context) error {
	_, err := s.js.UpdateStream(ctx, jetstream.StreamConfig{
		Name: s.name, Subjects: []string{s.name + ".>", s.nowhere()}, Storage: jetstream.MemoryStorage, Duplicates: forgets,
	})
	return err
}

func (s stream) receipts(ctx context.Context) ([]string, error) {
	all, err := s.js.Stream(ctx, s.name)
	if err != nil {
		return nil, err
	}
	info, err := all.Info(ctx)
	if err != nil {
		return nil, err
	}
	var payloads []string
	for n := info.State.FirstSeq; n <= info.State.LastSeq; n++ {
		m, err := all.GetMsg(ctx, n)
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, string(m.Data))
	}
	return payloads, nil
}

func (s stream) left(ctx context.Context) (int, error) {
	c, err := s.js.Consumer(ctx, s.name, "points")
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	info := c.CachedInfo()
	return int(info.NumPending) + info.NumAckPending, nil
}

// queue is a destination at RabbitMQ.
type queue struct {
	ch     *amqp.Channel
	name   string
	opened bool
}

// queue creates a queue.
func (s *servers) queue(t *testing.T, name string) destination {
	t.Helper()
	conn, err := amqp.Dial(pgtest.Env(t, "POSTRIDER_TEST_RABBITMQ"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(name, false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	q := &queue{ch: ch, name: name}
	t.Cleanup(func() {
		_, _ = ch.QueueDelete(name, false, false, false)
		_, _ = ch.QueueDelete(q.nowhere(), false, false, false)
	})
	return q
}

func (q *queue) address() (string, string) { return "rabbitmq", os.Getenv("POSTRIDER_TEST_RABBITMQ") }
func (q *queue) topic() string             { return q.name }
func (q *queue) nowhere() string           { return "nowhere-" + q.name }

func (q *queue) open(context.Context) error {
	_, err := q.ch.QueueDeclare(q.nowhere(), false, false, false, false, nil)
	q.opened = err == nil
	return err
}

// receipts does not know the order between two queues. Messages that were rejected at first come
// before the others.
func (q *queue) receipts(context.Context) ([]string, error) {
	var payloads []string
	names := []string{q.name}
	if q.opened {
		names = []string{q.nowhere(), q.name}
	}
	for _, name := range names {
		for {
			d, ok, err := q.ch.Get(name, true)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			payloads = append(payloads, string(d.Body))
		}
	}
	return payloads, nil
}

// left does not count delivered messages: they are redelivered when the connection of their
// consumer ends.
func (q *queue) left(context.Context) (int, error) {
	info, err := q.ch.QueueDeclarePassive(q.name, false, false, false, false, nil)
	return info.Messages, err
}
