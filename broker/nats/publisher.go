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
	keeper "github.com/postrider/postrider/broker/session"
	"github.com/postrider/postrider/wire"
)

// What one call has on its way at a time. More could fill the queue in front of a stream, whose overflow servers drop.
const (
	maxBatch      = 500 // of an atomic batch servers take 1000
	maxBatchBytes = 4 << 20
	oneByOne      = 64 // keys, where a batch was refused
)

// Publisher sends messages to JetStream. It is safe for concurrent use.
type Publisher struct {
	config   Config
	encoders sync.Pool
	sessions *keeper.Keeper[*session]
}

// NewPublisher returns a publisher, which connects when it is used. Errors are about the configuration.
func NewPublisher(config Config) (*Publisher, error) {
	codec, err := config.prepare()
	if err != nil {
		return nil, err
	}
	p := &Publisher{config: config}
	keyed := config.Format == wire.Raw || config.Format == wire.Debezium
	p.encoders.New = func() any {
		return &encoder{codec: codec, stream: config.Stream, keyed: keyed, msg: client.Msg{Header: make(client.Header, 16)}}
	}
	p.sessions = keeper.New("nats", config.Logger, func(ctx context.Context) (*session, error) {
		return openSession(ctx, &p.config)
	})
	return p, nil
}

// KeepsOrder is true for atomic batches only: otherwise a stream can refuse a message and take the next one, for
// instance while its leader changes.
func (p *Publisher) KeepsOrder() bool { return p.config.Atomic }

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
	failed := false
	for begin, end := 0, 0; begin < len(msgs); begin = end {
		for size := 0; end < len(msgs) && end-begin < maxBatch && size < maxBatchBytes; end++ {
			size += len(msgs[end].Payload)
		}
		part := errs[begin:end]
		switch {
		case failed && p.config.Atomic:
			copy(part, slices.Repeat([]error{postrider.Unavailable(postrider.ErrNotTried)}, len(part)))
		case p.config.Atomic:
			p.publishAtomic(ctx, s, msgs[begin:end], part)
		default:
			p.publish(ctx, s, msgs[begin:end], part)
		}
		failed = failed || slices.ContainsFunc(part, func(err error) bool { return err != nil })
	}
	if failed {
		return errs
	}
	return nil
}

// publish sends all messages, none waiting for another.
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
	reasons := make(map[nobodyError]error)
	for i, err := range errs {
		if nobody, ok := err.(nobodyError); ok { //nolint:errorlint // answers are not wrapped
			if reasons[nobody] == nil {
				reasons[nobody] = s.explain(ctx, string(nobody))
			}
			errs[i] = reasons[nobody]
		}
	}
}

// publishAtomic sends messages as one batch. If that is refused as a whole, they are sent one by one, which finds the
// message that is to blame, or those that are stored already.
func (p *Publisher) publishAtomic(ctx context.Context, s *session, msgs []postrider.Message, errs []error) {
	if s.atomic && len(msgs) > 1 {
		err := p.sendBatch(ctx, s, msgs)
		var answer *jetstream.APIError
		var nobody nobodyError
		if postrider.ClassOf(err) != postrider.ClassPermanent && !errors.As(err, &answer) && !errors.As(err, &nobody) {
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

// sendBatch returns the fate of all messages. Without its last message a batch is void.
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

// explain distinguishes a subject without a stream from a stream without a leader, which comes back by itself. Only the
// word of the cluster's own leader counts, and in a cluster twice: it may have been elected a moment ago.
func (s *session) explain(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.ConnectTimeout)
	defer cancel()
	for asked := 1; ; asked++ {
		stream, err := s.js.StreamNameBySubject(ctx, subject)
		switch {
		case err == nil:
			return postrider.Unavailable(fmt.Errorf("nats: stream %s does not answer at the moment", stream))
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return postrider.Unavailable(fmt.Errorf("%w, and whether a stream has it is not known: %w", nobodyError(subject), err))
		case asked == 2 || s.conn.ConnectedClusterName() == "":
			return postrider.Permanent(fmt.Errorf("nats: no stream has the subject %q", subject))
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}
