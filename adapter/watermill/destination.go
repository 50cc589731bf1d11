package watermill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

var (
	_ postrider.Publisher = (*Destination)(nil)
	_ broker.OrderKeeper  = (*Destination)(nil)
	_ broker.Inspector    = (*Destination)(nil)
	_ broker.Namer        = (*Destination)(nil)
)

// Destination sends messages through a Watermill publisher, one per call, because Watermill returns
// a single error for several messages, which leaves their outcomes unknown. It is safe for
// concurrent use.
//
// A message is confirmed when the publisher has returned nil. A publisher that sends in the
// background, or returns before the broker has answered, confirms messages that can still be lost.
type Destination struct {
	pub     message.Publisher
	cfg     Config
	name    func(m *postrider.Message) string
	convert func(m *postrider.Message) (string, *message.Message, error)
	places  chan struct{} // one for each running call of pub
	close   func() error

	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the call for the key has returned
}

// NewDestination returns a destination that sends through pub and closes it at the end. It does not
// connect.
func NewDestination(pub message.Publisher, cfg Config) (*Destination, error) {
	codec, err := NewCodec(cfg)
	if err := errors.Join(cfg.check(pub), err); err != nil {
		return nil, err
	}
	cfg.Parallel = cmp.Or(cfg.Parallel, defaultParallel)
	if cfg.Classify == nil {
		cfg.Classify = classify
	}
	d := &Destination{
		pub: pub, cfg: cfg, name: codec.name, convert: cfg.Convert, close: sync.OnceValue(pub.Close),
		places: make(chan struct{}, cfg.Parallel), busy: make(map[string]chan struct{}),
	}
	if d.convert == nil {
		d.convert = func(m *postrider.Message) (string, *message.Message, error) {
			topic, out := codec.Encode(m)
			return topic, out, nil
		}
	} else {
		d.name = func(m *postrider.Message) string {
			topic, _, _ := d.convert(m) // a message that cannot be converted goes nowhere
			return topic
		}
	}
	return d, nil
}

// Publish implements [postrider.Publisher]. It sends messages of one key in sequence, and different
// keys concurrently.
func (d *Destination) Publish(ctx context.Context, msgs []postrider.Message) []error {
	return broker.Each(ctx, msgs, d.cfg.Parallel, d.send)
}

// KeepsOrder returns true: after a failed message, later messages of its key are not sent.
func (d *Destination) KeepsOrder() bool { return true }

// NameOf returns the topic. With Config.Convert it converts the message.
func (d *Destination) NameOf(m *postrider.Message) string { return d.name(m) }

// Inspect implements [broker.Inspector]. A Watermill publisher cannot report the durability of its
// confirmations.
func (d *Destination) Inspect(context.Context, []string) (broker.Inspection, error) {
	return broker.Inspection{
		Confirmed: "The Watermill publisher has returned nil. What the broker has done by then is up to how that publisher is set up.",
		Settings:  []broker.Setting{{Name: "publisher", Value: fmt.Sprintf("%T", d.pub)}},
	}, nil
}

// Close closes the Watermill publisher.
func (d *Destination) Close() error { return d.close() }

func (d *Destination) send(ctx context.Context, m *postrider.Message) error {
	topic, out, err := d.convert(m)
	if err != nil {
		return postrider.Permanent(fmt.Errorf("watermill: %w", err))
	}
	leave, err := d.enter(ctx, m.OrderKey())
	if err != nil {
		return postrider.Unavailable(fmt.Errorf("watermill: not sent, earlier calls have not returned: %w", err))
	}
	out.SetContext(ctx)
	answer := make(chan error, 1)
	go func() {
		err := d.pub.Publish(topic, out)
		leave()
		answer <- err
	}()
	select {
	case err = <-answer:
	case <-ctx.Done(): // some publishers ignore the message's context
		return fmt.Errorf("watermill: no answer: %w", ctx.Err())
	}
	if err == nil {
		return nil
	}
	return d.resolve(ctx, err)
}

// enter waits until a call may start. A call whose context has ended still counts until it returns:
// it may send late, which must not happen after a later message of its key, and the number of such
// calls must be limited.
func (d *Destination) enter(ctx context.Context, key string) (leave func(), err error) {
	leaveKey, err := d.enterKey(ctx, key)
	if err != nil {
		return nil, err
	}
	select {
	case d.places <- struct{}{}:
		return func() { leaveKey(); <-d.places }, nil
	case <-ctx.Done():
		leaveKey()
		return nil, ctx.Err()
	}
}

func (d *Destination) enterKey(ctx context.Context, key string) (leave func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	done := make(chan struct{})
	for {
		d.mu.Lock()
		before, taken := d.busy[key]
		if !taken {
			d.busy[key] = done
		}
		d.mu.Unlock()
		if !taken {
			break
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {
		d.mu.Lock()
		delete(d.busy, key)
		d.mu.Unlock()
		close(done)
	}, nil
}

// resolve classifies an error of the publisher, with a probe if it is unknown.
func (d *Destination) resolve(ctx context.Context, err error) error {
	err = d.cfg.Classify(err)
	if d.cfg.Probe == nil || postrider.ClassOf(err) != postrider.ClassUnknown || ctx.Err() != nil {
		return err
	}
	if probe := d.cfg.Probe(ctx); probe != nil {
		return postrider.Unavailable(fmt.Errorf("%w (and the broker does not answer: %w)", err, probe))
	}
	return err
}

// classify recognises failures to connect, after which nothing was sent. After a broken connection
// the outcome is unknown.
func classify(err error) error {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return postrider.Unavailable(err)
	}
	return err
}
