package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/broker/webhook/signature"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// headers returns the headers of a message, under the names that a protocol gives attributes.
func (m message) headers(prefix, contentType string, each func(name, value string)) {
	each(work.MarkForeign, m.mark)
	for name, value := range m.attributes {
		each(prefix+name, value)
	}
	if m.structured {
		each(contentType, structuredType)
	}
}

type toKafka struct{ client *kgo.Client }

func openKafka(address string) (sender, error) {
	client, err := work.KafkaClient(address, kgo.DefaultProduceTopic(world.Kafka))
	return toKafka{client}, err
}

func (k toKafka) send(ctx context.Context, m message) error {
	r := &kgo.Record{Value: m.body}
	if m.key != "" {
		r.Key = []byte(m.key)
	}
	m.headers("ce_", "content-type", func(name, value string) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return k.client.ProduceSync(ctx, r).FirstErr()
}

func (k toKafka) close() { k.client.Close() }

type toNATS struct {
	conn *nats.Conn
	js   jetstream.JetStream
}

func openNATS(address string) (sender, error) {
	conn, err := nats.Connect(address)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	return toNATS{conn, js}, err
}

// send sets no Nats-Msg-Id: the server itself would drop ours as a repetition.
func (n toNATS) send(ctx context.Context, m message) error {
	out := nats.NewMsg(world.NATS)
	out.Data = m.body
	m.headers("ce-", "Content-Type", out.Header.Set)
	_, err := n.js.PublishMsg(ctx, out)
	return err
}

func (n toNATS) close() { n.conn.Close() }

type toRabbitMQ struct {
	conn    *amqp.Connection
	channel *amqp.Channel
}

func openRabbitMQ(address string) (sender, error) {
	conn, err := amqp.DialConfig(address, amqp.Config{Heartbeat: 5 * time.Second, Dial: amqp.DefaultDial(5 * time.Second)})
	if err != nil {
		return nil, err
	}
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err != nil {
		_ = conn.Close()
	}
	return toRabbitMQ{conn, channel}, err
}

func (r toRabbitMQ) send(ctx context.Context, m message) error {
	out := amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{}, Body: m.body}
	m.headers("cloudEvents_", "", func(name, value string) {
		if name == "" {
			out.ContentType = value
		} else {
			out.Headers[name] = value
		}
	})
	confirm, err := r.channel.PublishWithDeferredConfirmWithContext(ctx, work.Exchange, world.RabbitMQ, true, false, out)
	if err != nil {
		return err
	}
	stored, err := confirm.WaitContext(ctx)
	if err == nil && !stored {
		err = errors.New("the queue is full")
	}
	return err
}

func (r toRabbitMQ) close() { _ = r.conn.Close() }

type toRedis struct{ client *redis.Client }

func openRedis(address string) (sender, error) {
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	options.MaxRetries = -1
	return toRedis{redis.NewClient(options)}, nil
}

func (r toRedis) send(ctx context.Context, m message) error {
	values := []any{"data", m.body}
	m.headers("ce-", "content-type", func(name, value string) { values = append(values, name, value) })
	return r.client.XAdd(ctx, &redis.XAddArgs{Stream: world.Redis, Values: values}).Err()
}

func (r toRedis) close() { _ = r.client.Close() }

type toHTTP struct {
	address string
	signer  *signature.Signer
}

func openHTTP(address string) (sender, error) {
	signer, err := signature.NewSigner(work.Secret)
	return toHTTP{address, signer}, err
}

// send signs the event's own ID. Only a structured event may have an ID of ours: without a signed
// source, the same ID is the same message.
func (h toHTTP) send(ctx context.Context, m message) error {
	if _, event := m.attributes["id"]; event {
		m.attributes["id"] = m.id
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address, bytes.NewReader(m.body))
	if err != nil {
		return err
	}
	m.headers("ce-", "Content-Type", req.Header.Set)
	h.signer.Sign(req.Header, m.id, time.Now(), m.body)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the receiver answers %s", resp.Status)
	}
	return nil
}

func (h toHTTP) close() { http.DefaultClient.CloseIdleConnections() }
