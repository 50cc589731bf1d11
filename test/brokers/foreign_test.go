package brokers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/jackc/pgx/v5"
	natsclient "github.com/nats-io/nats.go"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// foreign is a message of another program. Its IDs count from 1, so that they collide.
type foreign struct {
	Sender string `json:"sender"`
	N      int    `json:"n"`
}

func (f foreign) payload() []byte {
	text, _ := json.Marshal(f) // cannot fail
	return text
}

// TestForeignSenders has one consumer receive messages of senders without Postrider: CloudEvents of
// the official library in binary and structured mode, with the same IDs from two sources, plain
// Kafka records without an ID, and AMQP messages without one. The consumer is killed all the time.
// Each event takes effect once; an AMQP message without an ID takes effect at least once, because a
// redelivery cannot be recognized.
func TestForeignSenders(t *testing.T) {
	each := pick(500, 25_000) // from each of four senders
	nats, kafka, rabbit := find("nats"), find("kafka"), find("rabbitmq")
	s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), "", 1)
	effects := pgx.Identifier{s.cfg.Schema, "effects"}.Sanitize()
	s.exec("CREATE TABLE " + effects + " (sender text, n int, times int NOT NULL, PRIMARY KEY (sender, n))")
	var orders []order
	names := make(map[string]string)
	for _, b := range []server{nats, kafka, rabbit} {
		name := b.create(t)
		names[b.driver] = name
		values := map[string]string{"name": name, "group": "accounts"}
		if b.driver == "nats" {
			values["ack_wait"] = "1s"
		}
		set := b.settings(t, values)
		orders = append(orders, order{Driver: b.driver, URL: set.URL, Values: set.Values})
	}
	o := order{DSN: pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), Schema: s.cfg.Schema, Foreign: orders}
	sent := make(chan error, 3)
	go func() { sent <- sendCloudEvents(t.Context(), nats.settings(t, nil).URL, names["nats"], each) }()
	go func() { sent <- sendRecords(t.Context(), kafka.settings(t, nil).URL, names["kafka"], each) }()
	go func() { sent <- sendAMQP(t.Context(), rabbit.settings(t, nil).URL, names["rabbitmq"], each) }()

	var handled, kills int
	begin := time.Now()
	for timeout := time.Duration(pick(60, 900)) * time.Second; handled < 4*each; {
		if time.Since(begin) > timeout {
			t.Fatalf("%d of %d events were handled within %v, after %d kills", handled, 4*each, timeout, kills)
		}
		p := o.start(t)
		life := time.After(time.Duration(pick(300, 4000))*time.Millisecond + rand.N(time.Duration(pick(300, 20_000))*time.Millisecond))
		for alive := true; alive && handled < 4*each; {
			select {
			case <-life:
				alive = kills >= pick(1, 1000)
			case <-time.After(50 * time.Millisecond):
			}
			s.scan("SELECT count(*) FROM "+effects, &handled)
		}
		if handled < 4*each {
			p.end(syscall.SIGKILL)
			kills++
		} else {
			time.Sleep(2 * time.Second) // for redeliveries
			p.end(syscall.SIGTERM)
		}
	}
	for range 3 {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	var twice, repeated int
	s.scan("SELECT count(*) FILTER (WHERE times > 1 AND sender <> 'amqp'), count(*) FILTER (WHERE times > 1 AND sender = 'amqp') FROM "+effects, &twice, &repeated)
	t.Logf("%d events of four senders, %d kills, %v: %d handled, %d twice; of those without any identity, %d more than once",
		4*each, kills, time.Since(begin).Round(time.Second), handled, twice, repeated)
	if handled != 4*each || twice > 0 {
		t.Errorf("%d of %d events were handled, %d of them twice", handled, 4*each, twice)
	}
	if repeated > 64*kills { // what was in flight
		t.Errorf("%d messages without an ID were handled more than once, after %d kills", repeated, kills)
	}
	var deadLetters int
	s.scan("SELECT count(*) FROM "+pgx.Identifier{s.cfg.Schema, "deferred"}.Sanitize(), &deadLetters)
	if deadLetters > 0 {
		t.Errorf("%d messages were deferred", deadLetters)
	}
}

// sendCloudEvents sends events with the official library. NATS has the same headers as HTTP.
func sendCloudEvents(ctx context.Context, url, subject string, n int) error {
	conn, err := natsclient.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		for _, structured := range []bool{false, true} {
			sender := map[bool]string{false: "binary", true: "structured"}[structured]
			e := event.New()
			e.SetID(fmt.Sprint(i))
			e.SetSource("/" + sender)
			e.SetType("foreign.sent")
			if err := e.SetData("application/json", foreign{sender, i}); err != nil {
				return err
			}
			with := binding.WithForceBinary(ctx)
			if structured {
				with = binding.WithForceStructured(ctx)
			}
			request := &http.Request{Header: make(http.Header)}
			if err := cehttp.WriteRequest(with, binding.ToMessage(&e), request); err != nil {
				return err
			}
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return err
			}
			m := &natsclient.Msg{Subject: subject, Data: body, Header: make(natsclient.Header)}
			for name, values := range request.Header {
				if name == "Content-Type" {
					m.Header[name] = values
				} else {
					m.Header[strings.ToLower(name)] = values
				}
			}
			if _, err := js.PublishMsgAsync(m); err != nil {
				return err
			}
		}
		if i%200 == 0 || i == n {
			select {
			case <-js.PublishAsyncComplete():
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// sendRecords sends Kafka records with only a value.
func sendRecords(ctx context.Context, url, topic string, n int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.TrimPrefix(url, "kafka://")), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	for i := 1; i <= n; i++ {
		client.Produce(ctx, &kgo.Record{Value: foreign{"kafka", i}.payload()}, nil)
	}
	return client.Flush(ctx)
}

// sendAMQP sends AMQP messages with only a body.
func sendAMQP(ctx context.Context, url, queue string, n int) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var last *amqp.DeferredConfirmation
	for i := 1; i <= n; i++ {
		last, err = ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false,
			amqp.Publishing{Body: foreign{"amqp", i}.payload(), DeliveryMode: amqp.Persistent})
		if err != nil {
			return err
		}
		if i%500 == 0 || i == n {
			if ok, err := last.WaitContext(ctx); !ok {
				return fmt.Errorf("not confirmed: %w", err)
			}
		}
	}
	return nil
}
