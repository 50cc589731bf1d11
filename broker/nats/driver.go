package nats

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "nats",
		Schemes:   []string{"nats", "tls"},
		Example:   "nats://localhost:4222",
		Doc:       "Streams of NATS JetStream; the topic is the subject.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return broker.From(s, NewPublisher) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return broker.From(s, NewConsumer) },
		Create:    create,
		Bare:      bare,
	})
}

// connected calls do with a publisher and its session.
func connected(ctx context.Context, s *broker.Settings, do func(*Publisher, *session) error) error {
	p, err := broker.From(s, NewPublisher)
	if err != nil {
		return err
	}
	defer p.sessions.Close()
	link, err := p.sessions.Get(ctx)
	if err != nil {
		return err
	}
	return do(p, link)
}

func create(ctx context.Context, s *broker.Settings, name string) error {
	return connected(ctx, s, func(p *Publisher, link *session) error {
		if _, err := link.js.StreamNameBySubject(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		_, err := link.js.CreateStream(ctx, jetstream.StreamConfig{
			Name:               cmp.Or(p.config.Stream, strings.ReplaceAll(name, ".", "_")),
			Subjects:           []string{name},
			Storage:            jetstream.FileStorage,
			Replicas:           p.config.Replicas,
			AllowAtomicPublish: p.config.Atomic,
		})
		return err
	})
}

// bare publishes asynchronously with the client alone. NATS has no keys; a header carries them.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	return connected(ctx, s, func(_ *Publisher, link *session) error {
		failed := make(chan error, load.Messages)
		js, err := link.config.jetStream(link.conn, jetstream.WithPublishAsyncMaxPending(4096),
			jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *client.Msg, err error) { failed <- err }))
		if err != nil {
			return err
		}
		payload := make([]byte, load.Size)
		for i := range load.Messages {
			key := client.Header{headerKey: {strconv.Itoa(i % max(load.Keys, 1))}}
			m := &client.Msg{Subject: load.Name, Data: payload, Header: key}
			if _, err := js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0)); err != nil {
				return err
			}
		}
		select {
		case <-js.PublishAsyncComplete():
		case <-ctx.Done():
			return ctx.Err()
		}
		close(failed)
		return <-failed // nil if there was no error
	})
}
