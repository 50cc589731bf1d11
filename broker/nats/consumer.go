package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/retry"
)

// Consumer receives the messages of a subject through a durable pull consumer.
type Consumer struct {
	intake.Counters

	config Config
	coder  *codec.Codec
	dead   intake.DeadLetters
}

// NewConsumer returns a consumer, which connects when it is used. Errors concern the configuration.
func NewConsumer(config Config) (*Consumer, error) {
	var missing error
	if config.Name == "" {
		missing = errors.New("option name (Name) is empty: say which subject to receive")
	}
	if config.Group == "" {
		missing = errors.Join(missing, errors.New("option group (Group) is empty: say which durable consumer receives it"))
	}
	if config.DeadLetter != "" && matches(config.Name, config.DeadLetter) {
		missing = errors.Join(missing, fmt.Errorf("dead_letter (DeadLetter) is %q, which the consumer itself receives through %q: want another subject",
			config.DeadLetter, config.Name))
	}
	coder, err := config.prepare(missing)
	if err != nil {
		return nil, err
	}
	dead, err := intake.OpenDeadLetters(config.DeadLetter, config.Name, config, NewPublisher)
	if err != nil {
		return nil, err
	}
	return &Consumer{config: config, coder: coder, dead: dead}, nil
}

// Close implements [postrider.Consumer]. It closes the dead-letter publisher; other connections end
// with Consume.
func (c *Consumer) Close() error { return c.dead.Close() }

// matches reports whether a subscription to pattern, which may have wildcards, receives messages
// sent to subject.
func matches(pattern, subject string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		if token == ">" {
			return len(have) > i
		}
		if i >= len(have) || token != "*" && token != have[i] {
			return false
		}
	}
	return len(want) == len(have)
}

// Consume implements [postrider.Consumer].
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.config.InFlight, Waiting: c.config.MaxWaiting, Retry: retry.Policy{Attempts: c.config.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.config.Logger,
	})
	if c.config.Ordered {
		return c.consumeOrdered(in, stop)
	}
	r := &receiver{Consumer: c, in: in, held: held{msgs: make(map[position]*holding)}, hands: in.Accept, stop: stop}
	intake.Persist(ctx, c.config.Logger, c.config.Name, r.receive)
	in.Wait()
	return r.fatal
}

// receiver is the state of one call of Consume.
type receiver struct {
	*Consumer
	in     *intake.Intake
	held   held
	hands  func(intake.Delivery) bool // hands over to the handler; waits for room
	stop   func()
	fatal  error     // why no attempt can ever succeed
	shared sync.Once // logs other processes once
}

// receive connects and hands messages over until an error occurs. At the end of ctx it waits for
// the handlers and gives back unhandled messages, oldest first: the server redelivers them before
// any message that it has not delivered yet.
func (r *receiver) receive(ctx context.Context, working func()) error {
	l, durable, g, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer r.keep(l, durable)()
	messages, err := durable.Messages(jetstream.PullMaxMessages(r.config.InFlight), jetstream.PullHeartbeat(5*time.Second))
	if err != nil {
		return err
	}
	working()
	for err == nil {
		err = r.next(ctx, messages, g)
		if now := time.Now(); err == nil && g.due(now) {
			err = r.look(ctx, durable, g)
		}
	}
	messages.Drain() // hand over what has arrived: it would be redelivered late, and later messages could overtake it
	for left := error(nil); left == nil; {
		var msg jetstream.Msg
		if msg, left = messages.Next(jetstream.NextMaxWait(r.config.ConnectTimeout)); left == nil {
			left = r.accept(msg, g)
		}
	}
	r.leave(ctx, l, g, r.in.Wait)
	return err
}

// open connects and looks up the durable consumer.
func (r *receiver) open(ctx context.Context) (*link, jetstream.Consumer, *gate, error) {
	l, err := r.config.connect(ctx, "postrider consumer "+r.config.Group, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	durable, err := r.durable(ctx, l.js)
	if err != nil {
		l.Close()
		return nil, nil, nil, err
	}
	r.held.use(l.conn)
	return l, durable, newGate(durable.CachedInfo(), r.held.open(), time.Now()), nil
}

// keep renews the leases of messages until the returned function is called, which closes the
// connection.
func (r *receiver) keep(l *link, durable jetstream.Consumer) (end func()) {
	var keeping sync.WaitGroup
	keeping.Go(func() { r.held.keep(l, durable.CachedInfo().Config.AckWait, r.config.ConnectTimeout) })
	return func() {
		l.Close()
		keeping.Wait()
	}
}

// leave ends work on a connection. At the end of ctx it waits for the handlers and gives back
// unhandled messages. Otherwise only the connection was lost: messages behind the gate are
// redelivered.
func (r *receiver) leave(ctx context.Context, l *link, g *gate, wait func()) {
	if ctx.Err() == nil {
		r.held.forget(slices.Collect(maps.Keys(g.waiting)))
		return
	}
	wait()
	r.held.giveBack()
	_ = l.conn.FlushTimeout(r.config.ConnectTimeout)
}

// next waits for a message, but only briefly while the gate is closed.
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

// accept records a message and hands it over, or holds it back while the gate is closed.
func (r *receiver) accept(msg jetstream.Msg, g *gate) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	if !g.delivered(meta.Sequence.Consumer, time.Now()) {
		r.logShared()
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

// look queries the server whether the gate may open, and hands over the messages behind it.
func (r *receiver) look(ctx context.Context, durable jetstream.Consumer, g *gate) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.ConnectTimeout)
	defer cancel()
	info, err := durable.Info(ctx)
	if err != nil {
		return err
	}
	if !g.look(info.NumAckPending, r.held.open(), time.Now()) {
		r.logShared()
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

func (r *receiver) logShared() {
	r.shared.Do(func() {
		if r.config.Ordered {
			r.config.Logger.Warn("nats: another process of the group receives without the option ordered; nothing is handled here until that process holds no messages",
				"subject", r.config.Name, "group", r.config.Group)
			return
		}
		r.config.Logger.Warn("nats: another process of the group is at work: order per key does not hold between them",
			"subject", r.config.Name, "group", r.config.Group)
	})
}

// hand gives a message to the handler; it waits for room.
func (r *receiver) hand(at position, msg jetstream.Msg) {
	m, err := decode(r.coder, at.String(), msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		r.config.Logger.Warn("nats: invalid CloudEvent, handing the message over undecoded",
			"subject", msg.Subject(), "sequence", at.sequence, "err", err)
	}
	r.hands(intake.Delivery{Message: m, Done: func() { r.held.done(at) }})
}

// durable looks up the durable consumer, or creates it.
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
			MaxAckPending: r.config.InFlight + r.config.MaxWaiting,
		})
	}
	if err != nil {
		return nil, err
	}
	has := durable.CachedInfo().Config
	if r.fatal = r.config.unfit(stream, has); r.fatal != nil {
		r.stop()
	}
	if want := r.config.InFlight + r.config.MaxWaiting; has.MaxAckPending > 0 && has.MaxAckPending < want {
		r.config.Logger.Warn("nats: the durable consumer's max ack pending is less than in_flight and max_waiting: keys that fail can hold up all others",
			"group", r.config.Group, "stream", stream, "max_ack_pending", has.MaxAckPending, "want", want)
	}
	if waits := leaseOf(has); r.config.Ordered && waits > r.config.Lease {
		r.config.Logger.Warn("nats: the durable consumer's ack wait is longer than the lease; after a crash nothing is handled for that time",
			"group", r.config.Group, "stream", stream, "ack_wait", waits, "lease", r.config.Lease,
			"remedy", fmt.Sprintf("nats consumer edit %s %s --wait=%v", stream, r.config.Group, r.config.Lease))
	}
	return durable, r.fatal
}

// unfit reports every setting of a durable consumer that would lose messages, all at once.
func (c *Config) unfit(stream string, has jetstream.ConsumerConfig) error {
	var errs []error
	refuse := func(wrong bool, setting string, value, want any, why string) {
		if wrong {
			errs = append(errs, fmt.Errorf("%s is %v, want %v: %s", setting, value, want, why))
		}
	}
	refuse(has.FilterSubject != c.Name, "filter subject", strconv.Quote(has.FilterSubject), strconv.Quote(c.Name), "other messages would come")
	refuse(has.AckPolicy != jetstream.AckExplicitPolicy, "ack policy", has.AckPolicy, jetstream.AckExplicitPolicy,
		"messages would count as handled that are not")
	refuse(has.MaxDeliver > 0, "max deliver", has.MaxDeliver, -1, "a message that was delivered so often is never delivered again, handled or not")
	refuse(has.HeadersOnly, "headers only", has.HeadersOnly, false, "payloads would be missing")
	refuse(has.InactiveThreshold > 0, "inactive threshold", has.InactiveThreshold, time.Duration(0),
		"the server forgets a consumer that is away for so long, and what it has acknowledged")
	most := max(mostWaiting, c.InFlight+c.MaxWaiting)
	refuse(c.Ordered && (has.MaxAckPending <= 0 || has.MaxAckPending > most), "max ack pending", has.MaxAckPending, fmt.Sprintf("at most %d", most),
		"with ordered, as many may wait in memory after a crash")
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("nats: durable consumer %s of stream %s cannot be used: %w; change it with nats consumer edit, or delete it", c.Group, stream, errors.Join(errs...))
}
