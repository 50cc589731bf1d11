package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/postrider/postrider"
)

var _ postrider.Outbox[*Tx] = (*Store)(nil)

// ErrTxDone is returned by every use of a [Tx] that was committed or rolled back before.
var ErrTxDone = errors.New("memory: transaction has already been committed or rolled back")

// Tx is a transaction of the store: the messages enqueued in it appear together, at Commit.
type Tx struct {
	store   *Store
	pending []postrider.Message
	done    bool
}

// Begin starts a transaction. One that is neither committed nor rolled back holds up nothing.
func (s *Store) Begin() *Tx { return &Tx{store: s} }

// Enqueue implements [postrider.Outbox].
func (s *Store) Enqueue(ctx context.Context, tx *Tx, msgs ...postrider.Message) error {
	if tx.store != s {
		return errors.New("memory: transaction of another store")
	}
	accepted, err := accept(ctx, msgs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx.done {
		return ErrTxDone
	}
	tx.pending = append(tx.pending, accepted...)
	return nil
}

// Commit makes the transaction's messages visible, behind all that were committed before.
func (tx *Tx) Commit() error {
	return tx.finish(tx.store.add)
}

// Rollback forgets the transaction's messages. After Commit it changes nothing and returns [ErrTxDone], so that it can
// be deferred.
func (tx *Tx) Rollback() error {
	return tx.finish(func([]postrider.Message) {})
}

func (tx *Tx) finish(do func([]postrider.Message)) error {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	if tx.done {
		return ErrTxDone
	}
	do(tx.pending)
	tx.pending, tx.done = nil, true
	return nil
}

// Outbox returns an outbox that takes the place of a database's in an application whose transactions are of type Tx.
//
// The store cannot see that transaction, and does not look at it: messages are visible to relays as soon as Enqueue
// returns, and stay when the transaction is rolled back. That is enough for tests, and for a single process that
// enqueues as the last step before its commit. A transaction that is a [*Tx] of the same store is honoured.
func Outbox[Tx any](s *Store) postrider.Outbox[Tx] { return outbox[Tx]{s} }

type outbox[T any] struct{ store *Store }

func (o outbox[T]) Enqueue(ctx context.Context, tx T, msgs ...postrider.Message) error {
	if own, ok := any(tx).(*Tx); ok && own != nil {
		return o.store.Enqueue(ctx, own, msgs...)
	}
	accepted, err := accept(ctx, msgs)
	if err != nil {
		return err
	}
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	o.store.add(accepted)
	return nil
}

// accept returns the store's own copies of the messages, or the reason why one of them cannot be accepted.
func accept(ctx context.Context, msgs []postrider.Message) ([]postrider.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	accepted := make([]postrider.Message, 0, len(msgs))
	for _, m := range msgs {
		if err := m.Validate(); err != nil {
			return nil, err
		}
		if !m.DeliverAfter.IsZero() {
			return nil, fmt.Errorf("memory: DeliverAfter: %w", postrider.ErrUnsupported)
		}
		if m.Priority != 0 {
			return nil, fmt.Errorf("memory: Priority: %w", postrider.ErrUnsupported)
		}
		m = clone(m)
		if m.ID.IsZero() {
			m.ID = postrider.NewID()
		}
		accepted = append(accepted, m)
	}
	return accepted, nil
}

func clone(m postrider.Message) postrider.Message {
	m.Payload = bytes.Clone(m.Payload)
	m.Headers = maps.Clone(m.Headers)
	return m
}
