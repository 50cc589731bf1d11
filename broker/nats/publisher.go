package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/internal/stock"
	keeper "github.com/postrider/postrider/broker/session"
)

// Limits of one call's messages in flight. More could overflow the queue in front of a stream,
// whose excess the server drops.
const (
	maxBatch      = 500 // servers accept 1000 in an atomic batch
	maxBatchBytes = 4 << 20
	oneByOne      = 64 // keys sent in parallel after a batch was refused
)

var (
	_ broker.OrderKeeper = (*Publisher)(nil)
	_ broker.Inspector   = (*Publisher)(nil)
	_ broker.Namer       = (*Publisher)(nil)
)

// Publisher sends messages to JetStream. It is safe for concurrent use.
type Publisher struct {
	config   Config
	coder    *codec.Codec
	encoders sync.Pool
	sessions *keeper.Keeper[*session]
	recalls  stock.Rounds
}

// NewPublisher returns a publisher, which connects when it is used. Errors concern the
// configuration.
func NewPublisher(config Config) (*Publisher, error) {
	coder, err := config.prepare()
	if err != nil {
		return nil, err
	}
	p := &Publisher{config: config, coder: coder}
	keyed := config.Format == codec.Raw || config.Format == codec.Debezium
	p.encoders.New = func() any {
		return &encoder{coder: coder, stream: config.Stream, keyed: keyed, msg: client.Msg{Header: make(client.Header, 16)}}
	}
	p.sessions = keeper.New("nats", config.Logger, func(ctx context.Context) (*session, error) {
		return openSession(ctx, &p.config)
	})
	return p, nil
}

// KeepsOrder reports true for atomic batches only. Otherwise a stream can refuse a message and
// accept the next one, for example during a leader change.
func (p *Publisher) KeepsOrder() bool { return p.config.Atomic }

// NameOf returns the subject of m.
func (p *Publisher) NameOf(m *postrider.Message) string { return p.coder.Name(m) }

// Close implements [postrider.Publisher].
func (p *Publisher) Close() error {
	p.sessions.Close()
	return nil
}

// Publish implements [postrider.Publisher].
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	s, err := p.sessions.Get(ctx)
	if err != nil {
		return slices.Repeat([]error{postrider.Unavailable(err)}, len(msgs))
	}
	errs := make([]error, len(msgs))
	c := order{atomic: p.config.Atomic}
	for begin, end := 0, 0; begin < len(msgs); begin = end {
		for size := 0; end < len(msgs) && end-begin < maxBatch && size < maxBatchBytes; end++ {
			size += len(msgs[end].Payload)
		}
		part, which := c.admit(msgs[begin:end], errs[begin:end])
		outcomes := make([]error, len(part))
		switch {
		case len(part) == 0:
		case p.config.Atomic:
			p.publishAtomic(ctx, s, part, outcomes)
		default:
			p.publish(ctx, s, part, outcomes)
		}
		for i, err := range outcomes {
			c.note(&part[i], err)
			errs[begin+which(i)] = err
		}
	}
	if c.failed {
		return errs
	}
	return nil
}

// order keeps the order of keys across the parts of a call if the parts are atomic. After a failed
// message, no later message of its key is sent, and none at all if the failure may affect other
// messages too.
type order struct {
	atomic, failed, stop bool
	keys                 map[string]bool
}

// note records the outcome of a message.
func (o *order) note(m *postrider.Message, err error) {
	if err == nil {
		return
	}
	if o.keys == nil {
		o.keys = make(map[string]bool)
	}
	o.failed, o.keys[m.OrderKey()] = true, true
	scope := postrider.ScopeOf(err)
	o.stop = o.stop || scope != postrider.ScopeMessage && scope != postrider.ScopeName && !errors.Is(err, postrider.ErrNotTried)
}

// admit returns the messages of a part that may be sent, and their indexes in the part. It sets the
// outcome of the others.
func (o *order) admit(msgs []postrider.Message, errs []error) (part []postrider.Message, which func(int) int) {
	if !o.atomic || !o.failed {
		return msgs, func(i int) int { return i }
	}
	var places []int
	for i := range msgs {
		if key := msgs[i].OrderKey(); o.stop || key != "" && o.keys[key] {
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
			continue
		}
		part, places = append(part, msgs[i]), append(places, i)
	}
	return part, func(i int) int { return places[i] }
}

// publish sends all messages concurrently.
func (p *Publisher) publish(ctx context.Context, s *session, msgs []postrider.Message, errs []error) {
	c := newCall(errs)
	e, _ := p.encoders.Get().(*encoder)
	defer p.encoders.Put(e)
	for i := range msgs {
		m, err := e.encode(&msgs[i])
		if err == nil && ctx.Err() != nil {
			err = postrider.Unavailable(ctx.Err())
		}
		if err != nil {
			s.mu.Lock()
			c.settle(i, err)
			s.mu.Unlock()
			continue
		}
		s.send(m, waiter{call: c, index: i})
	}
	s.wait(ctx, c)
	s.explainAll(ctx, errs)
}

// explainAll replaces each noListenerError with the reason. It queries all subjects concurrently,
// so that a missing one does not delay the others.
func (s *session) explainAll(ctx context.Context, errs []error) {
	places := make(map[noListenerError][]int)
	for i, err := range errs {
		if nobody, ok := err.(noListenerError); ok { //nolint:errorlint // answers are not wrapped
			places[nobody] = append(places[nobody], i)
		}
	}
	var run sync.WaitGroup
	for subject, indexes := range places {
		run.Go(func() {
			reason := s.explain(ctx, string(subject))
			for _, i := range indexes {
				errs[i] = reason
			}
		})
	}
	run.Wait()
}

// publishAtomic sends messages as one batch. If the batch is refused as a whole, it sends them one
// by one, which finds the message that caused the refusal, or those that are already stored.
func (p *Publisher) publishAtomic(ctx context.Context, s *session, msgs []postrider.Message, errs []error) {
	if s.atomic && len(msgs) > 1 {
		err := p.sendBatch(ctx, s, msgs)
		var answer *jetstream.APIError
		var nobody noListenerError
		about := postrider.ScopeOf(err)
		if about != postrider.ScopeMessage && about != postrider.ScopeName && !errors.As(err, &answer) && !errors.As(err, &nobody) {
			copy(errs, slices.Repeat([]error{err}, len(errs)))
			return
		}
	}
	copy(errs, broker.Each(ctx, msgs, oneByOne, func(ctx context.Context, m *postrider.Message) error {
		outcome := make([]error, 1)
		p.publish(ctx, s, []postrider.Message{*m}, outcome)
		return outcome[0]
	}))
}

// sendBatch returns the outcome for all messages. A batch without its last message is discarded by
// the server.
func (p *Publisher) sendBatch(ctx context.Context, s *session, msgs []postrider.Message) error {
	e, _ := p.encoders.Get().(*encoder)
	defer p.encoders.Put(e)
	id, c := nuid.Next(), newCall(make([]error, 1))
	for i := range msgs {
		m, err := e.encode(&msgs[i])
		if err != nil {
			return err
		}
		_ = e.set("Nats-Batch-Id", id)
		_ = e.set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		if i == len(msgs)-1 {
			_ = e.set("Nats-Batch-Commit", "1")
			s.send(m, waiter{call: c, count: len(msgs)})
		} else if err := s.write(m); err != nil {
			return err
		}
	}
	s.wait(ctx, c)
	return c.errs[0]
}

// explain distinguishes a subject without a stream from a stream without a leader, which recovers
// by itself. Only the answer of the cluster leader counts, and in a cluster it must be given twice:
// the leader may have been elected a moment ago.
func (s *session) explain(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.ConnectTimeout)
	defer cancel()
	for asked := 1; ; asked++ {
		stream, err := s.js.StreamNameBySubject(ctx, subject)
		switch {
		case err == nil:
			return postrider.NameUnavailable(fmt.Errorf("nats: stream %s does not answer at the moment", stream))
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return postrider.Unavailable(fmt.Errorf("%w, and it is unknown whether a stream has it: %w", noListenerError(subject), err))
		case asked == 2 || s.conn.ConnectedClusterName() == "":
			return postrider.NameUnavailable(fmt.Errorf("nats: no stream has the subject %q", subject))
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}
