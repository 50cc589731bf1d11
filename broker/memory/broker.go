// Package memory is a broker that keeps messages in memory, for experiments and for tests of
// applications that publish with Postrider.
//
// A test passes the [Broker] to a relay in place of the real publisher, runs the application, and
// waits for the messages with [Broker.Wait]. With [Broker.Fail] it simulates a broker that refuses
// messages or is down.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

var (
	_ postrider.Publisher = (*Broker)(nil)
	_ broker.OrderKeeper  = (*Broker)(nil)
	_ broker.Namer        = (*Broker)(nil)
	_ broker.Recaller     = (*Broker)(nil)
)

// Broker is a [postrider.Publisher] that keeps messages in the order in which it accepted them. It
// is safe for concurrent use.
type Broker struct {
	mu       sync.Mutex
	messages []postrider.Message
	times    []time.Time         // when each message arrived
	terms    map[[2]string]int64 // highest term of each recall, by sender and name
	arrived  chan struct{}       // closed and replaced when messages are added
	fail     func(postrider.Message) error
	groups   map[[2]string]*group // by topic and name
}

// New returns a broker that accepts everything.
func New() *Broker { return &Broker{arrived: make(chan struct{})} }

// Publish implements [postrider.Publisher]. It accepts each message unless the function set with
// [Broker.Fail] returns an error for it.
func (b *Broker) Publish(ctx context.Context, msgs []postrider.Message) []error {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()

	errs := make([]error, len(msgs))
	failed := make(map[string]bool) // keys with a failed message
	for i, m := range msgs {
		key := m.OrderKey()
		switch {
		case ctx.Err() != nil:
			errs[i] = postrider.Unavailable(ctx.Err())
		case failed[key]:
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
		case fail != nil:
			errs[i] = fail(clone(m)) // called without the lock, so that it may use the broker
		}
		if errs[i] == nil {
			errs[i] = b.keep(ctx, m)
		}
		if errs[i] != nil && key != "" {
			failed[key] = true
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

func (b *Broker) keep(ctx context.Context, m postrider.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if from, ok := broker.SenderOf(ctx); ok && from.Term < b.terms[[2]string{from.Name, b.NameOf(&m)}] {
		return postrider.Unavailable(broker.ErrFenced)
	}
	b.messages, b.times = append(b.messages, clone(m)), append(b.times, time.Now())
	close(b.arrived)
	b.arrived = make(chan struct{})
	return nil
}

// Recall implements [broker.Recaller].
func (b *Broker) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	from, ok := broker.SenderOf(ctx)
	if !ok {
		return slices.Repeat([]error{broker.ErrCannotRecall}, len(names))
	}
	return broker.EachName(names, 1, found, func(name string, found func(id string)) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.terms == nil {
			b.terms = make(map[[2]string]int64)
		}
		sender := [2]string{from.Name, name}
		if from.Term < b.terms[sender] {
			return postrider.Unavailable(broker.ErrFenced)
		}
		b.terms[sender] = from.Term
		for i := range b.messages {
			if b.NameOf(&b.messages[i]) == name && !b.times[i].Before(since) {
				found(b.messages[i].BrokerID())
			}
		}
		return nil
	})
}

// KeepsOrder returns true: after a failed message, later messages of its key are not tried.
func (b *Broker) KeepsOrder() bool { return true }

// NameOf returns the message's topic or, without one, its type.
func (b *Broker) NameOf(m *postrider.Message) string { return cmp.Or(m.Topic, m.Type) }

// Close does nothing. The messages remain available.
func (b *Broker) Close() error { return nil }

// Fail sets a function that is called for each message from now on. If f returns an error, the
// message fails with it. Mark errors with [postrider.Permanent], [postrider.NameUnavailable] or
// [postrider.Unavailable]; others mean an unknown outcome. Calls of f may overlap. Fail(nil)
// accepts everything again.
func (b *Broker) Fail(f func(postrider.Message) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = f
}

// Messages returns a copy of all accepted messages, oldest first, including duplicates.
func (b *Broker) Messages() []postrider.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	msgs := make([]postrider.Message, len(b.messages))
	for i, m := range b.messages {
		msgs[i] = clone(m)
	}
	return msgs
}

// Wait waits until at least n messages have been accepted since the broker was created, and returns
// them as [Broker.Messages] does. If ctx ends first, it returns what there is and the context's
// error.
func (b *Broker) Wait(ctx context.Context, n int) ([]postrider.Message, error) {
	for {
		b.mu.Lock()
		count, arrived := len(b.messages), b.arrived
		b.mu.Unlock()
		if count >= n {
			return b.Messages(), nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return b.Messages(), ctx.Err()
		}
	}
}

func clone(m postrider.Message) postrider.Message {
	m.Payload = bytes.Clone(m.Payload)
	m.Headers = maps.Clone(m.Headers)
	return m
}
