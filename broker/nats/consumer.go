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
	r := &receiver{Consumer: c, in: in, held: held{msgs: make(map[position]*holding)}, stop: stop}
	intake.Persist(ctx, c.config.Logger, c.config.Name, r.receive)
	in.Wait()
	return r.hopeless
}

// receiver is one call of Consume.
type receiver struct {
	*Consumer
	in       *intake.Intake
	held     held
	stop     func()
	hopeless error     // why no attempt can ever work
	shared   sync.Once // said that there are other processes
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
	r.held.use(l.conn)
	g := newGate(durable.CachedInfo(), r.held.open(), time.Now())
	messages, err := durable.Messages(jetstream.PullMaxMessages(r.config.InFlight), jetstream.PullHeartbeat(5*time.Second))
	if err != nil {
		return err
	}
	working()
	leases.Go(func() { r.held.keep(l, durable.CachedInfo().Config.AckWait, r.config.ConnectTimeout) })
	for err == nil {
		err = r.next(ctx, messages, g)
		if now := time.Now(); err == nil && g.due(now) {
			err = r.look(ctx, durable, g)
		}
	}
	messages.Drain() // what has come already is not delivered again soon: it must not be overtaken
	for left := error(nil); left == nil; {
		var msg jetstream.Msg
		if msg, left = messages.Next(jetstream.NextMaxWait(r.config.ConnectTimeout)); left == nil {
			left = r.accept(msg, g)
		}
	}
	if ctx.Err() != nil {
		r.in.Wait()
		r.held.giveBack()
		_ = l.conn.FlushTimeout(r.config.ConnectTimeout)
	} else {
		r.held.forget(slices.Collect(maps.Keys(g.waiting)))
	}
	return err
}

// next waits for a message, though not long while the gate is closed.
func (r *receiver) next(ctx context.Context, messages jetstream.MessagesContext, g *gate) error {
	wait := ctx
	if g.closed() {
		short, cancel := context.WithTimeout(ctx, lookEvery)
		defer cancel()
		wait = short
	}
	msg, err := messages.Next(jetstream.NextContext(wait))
	if err == nil {
		return r.accept(msg, g)
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// accept takes a message over. It waits if the gate is closed.
func (r *receiver) accept(msg jetstream.Msg, g *gate) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	if !g.delivered(meta.Sequence.Consumer, time.Now()) {
		r.sayShared()
	}
	at := positionOf(meta)
	if !r.held.take(at, msg.Reply()) {
		return nil
	}
	if g.closed() {
		g.waiting[at] = msg
		return nil
	}
	r.hand(at, msg)
	return nil
}

// look asks the server whether the gate may open, and hands over what has waited.
func (r *receiver) look(ctx context.Context, durable jetstream.Consumer, g *gate) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.ConnectTimeout)
	defer cancel()
	info, err := durable.Info(ctx)
	if err != nil {
		return err
	}
	if !g.look(info.NumAckPending, r.held.open(), time.Now()) {
		r.sayShared()
	}
	if g.closed() {
		return nil
	}
	for _, msg := range g.release() {
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		r.hand(positionOf(meta), msg)
	}
	return nil
}

func (r *receiver) sayShared() {
	r.shared.Do(func() {
		r.config.Logger.Warn("nats: another process of the group is at work: the order of a key does not hold among them",
			"subject", r.config.Name, "group", r.config.Group)
	})
}

// hand gives a message to the handler, when there is room.
func (r *receiver) hand(at position, msg jetstream.Msg) {
	m, err := decode(r.codec, msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		r.config.Logger.Warn("nats: not a CloudEvent though it says so, handed on as it is",
			"subject", msg.Subject(), "sequence", at.sequence, "err", err)
	}
	r.in.Accept(m, func() { r.held.done(at) })
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
