package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/wire"
)

// Consumer receives the messages of a subject through a durable pull consumer.
type Consumer struct {
	config Config
	codec  *wire.Codec
}

// NewConsumer returns a consumer, which connects when it is used. Errors are about the configuration.
func NewConsumer(config Config) (*Consumer, error) {
	var missing error
	if config.Name == "" || config.Group == "" {
		missing = errors.New("option name (Name) or group (Group) is empty: the subject to receive and the durable consumer")
	}
	codec, err := config.prepare(missing)
	return &Consumer{config, codec}, err
}

// Close implements [postrider.Consumer]. There is nothing left to close: connections end with Consume.
func (c *Consumer) Close() error { return nil }

// Consume implements [postrider.Consumer].
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	in := intake.Open(ctx, handle, intake.Config{Limit: c.config.InFlight, Logger: c.config.Logger})
	r := &receiver{Consumer: c, in: in, msgs: make(map[uint64]jetstream.Msg), stop: stop}
	intake.Persist(ctx, c.config.Logger, c.config.Name, r.receive)
	in.Wait()
	return r.hopeless
}

// receiver holds the messages that were received and are not done, by their sequence in the stream.
type receiver struct {
	*Consumer
	in       *intake.Intake
	stop     func()
	hopeless error // why no attempt can ever work

	mu   sync.Mutex
	msgs map[uint64]jetstream.Msg
}

// receive connects and hands messages over until something goes wrong. At the end of ctx it waits for the handlers and
// gives back what they have not done, the oldest first: it is delivered again before all that was not delivered yet.
func (r *receiver) receive(ctx context.Context, working func()) error {
	l, err := r.config.connect(ctx, "postrider consumer "+r.config.Group, nil)
	if err != nil {
		return err
	}
	var leases sync.WaitGroup
	defer leases.Wait()
	defer l.Close()
	durable, err := r.durable(ctx, l.js)
	if err != nil {
		return err
	}
	messages, err := durable.Messages(jetstream.PullMaxMessages(r.config.InFlight), jetstream.PullHeartbeat(5*time.Second))
	if err != nil {
		return err
	}
	working()
	leases.Go(func() { // renewed until the connection ends: a message may wait long for its turn
		for tick := time.Tick(max(durable.CachedInfo().Config.AckWait/3, time.Millisecond)); ; {
			select {
			case <-tick:
				r.each(jetstream.Msg.InProgress)
			case <-l.Lost():
				return
			}
		}
	})
	for err == nil {
		err = r.accept(messages.Next(jetstream.NextContext(ctx)))
	}
	messages.Drain() // what has come already is not delivered again soon: it must not be overtaken
	for left := error(nil); left == nil; {
		left = r.accept(messages.Next(jetstream.NextMaxWait(r.config.ConnectTimeout)))
	}
	if ctx.Err() != nil {
		r.in.Wait()
		r.each(jetstream.Msg.Nak)
		_ = l.conn.FlushTimeout(r.config.ConnectTimeout)
	}
	return err
}

// each does something with all messages, the oldest first. Where that fails, they come again.
func (r *receiver) each(do func(jetstream.Msg) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sequence := range slices.Sorted(maps.Keys(r.msgs)) {
		_ = do(r.msgs[sequence])
	}
}

func (r *receiver) accept(msg jetstream.Msg, err error) error {
	if err != nil {
		return err
	}
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	sequence := meta.Sequence.Stream
	r.mu.Lock()
	_, again := r.msgs[sequence] // its lease had run out without a connection; the last delivery is the one to acknowledge
	r.msgs[sequence] = msg
	r.mu.Unlock()
	if again {
		return nil
	}
	m, err := decode(r.codec, msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		r.config.Logger.Warn("nats: not a CloudEvent though it says so, handed on as it is",
			"stream", meta.Stream, "sequence", sequence, "err", err)
	}
	r.in.Accept(m, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		_ = r.msgs[sequence].Ack() // if that fails, because the connection is gone, the message comes again
		delete(r.msgs, sequence)
	})
	return nil
}

// durable finds the durable consumer, or makes it.
func (r *receiver) durable(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := js.StreamNameBySubject(ctx, r.config.Name)
	if err != nil {
		return nil, err
	}
	durable, err := js.Consumer(ctx, stream, r.config.Group)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		durable, err = js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
			Durable:       r.config.Group,
			FilterSubject: r.config.Name,
			DeliverPolicy: jetstream.DeliverAllPolicy,
			AckPolicy:     jetstream.AckExplicitPolicy,
			AckWait:       r.config.AckWait,
			MaxAckPending: r.config.InFlight,
		})
	}
	if err != nil {
		return nil, err
	}
	if has := durable.CachedInfo().Config; has.FilterSubject != r.config.Name || has.AckPolicy != jetstream.AckExplicitPolicy {
		r.hopeless = fmt.Errorf("nats: consumer %s of stream %s receives %q with ack policy %v, want %q and explicit",
			r.config.Group, stream, has.FilterSubject, has.AckPolicy, r.config.Name)
		r.stop()
	}
	return durable, r.hopeless
}
