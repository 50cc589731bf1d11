package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/enqueue"
)

var _ postrider.Outbox[*Tx] = (*DB)(nil)

// ErrTxDone is returned by every use of a [Tx] that was already committed or rolled back.
var ErrTxDone = errors.New("memory: transaction has already been committed or rolled back")

// Tx is a transaction of the store. The messages enqueued in it become visible together at Commit.
type Tx struct {
	store   *DB
	pending []entry
	keys    []string // dedup keys that it has claimed
	staged  []stage  // other changes that take effect at its end
	done    bool
}

// stage is a change that takes effect at the end of a transaction. Both functions are called with
// the store locked.
type stage struct{ commit, rollback func() }

// stage adds a change. The caller holds the lock.
func (tx *Tx) stage(commit, rollback func()) error {
	if tx.done {
		return ErrTxDone
	}
	tx.staged = append(tx.staged, stage{commit, rollback})
	return nil
}

// Begin starts a transaction. A transaction that is never finished blocks nothing.
func (s *DB) Begin() *Tx { return &Tx{store: s} }

// Enqueue implements [postrider.Outbox].
func (s *DB) Enqueue(ctx context.Context, tx *Tx, msgs ...postrider.Message) error {
	_, err := s.Offer(ctx, tx, msgs...)
	return err
}

// Offer implements [postrider.Outbox]. A dedup key that another transaction has claimed counts as
// enqueued, even while that transaction may still roll back.
func (s *DB) Offer(ctx context.Context, tx *Tx, msgs ...postrider.Message) (repeats []int, err error) {
	if tx.store != s {
		return nil, errors.New("memory: transaction of another store")
	}
	entries, err := accept(msgs)
	if err != nil {
		return nil, err
	}
	err = s.locked(ctx, func(time.Time) error {
		if tx.done {
			return ErrTxDone
		}
		if held := s.held() + len(tx.pending); held+len(entries) > s.most {
			return postrider.Unavailable(fmt.Errorf("memory: the store is full: it has %d messages, and MaxMessages is %d", held, s.most))
		}
		var fresh []entry
		fresh, repeats = s.claim(tx, entries)
		tx.pending = append(tx.pending, fresh...)
		return nil
	})
	return repeats, err
}

// Commit makes the transaction's messages visible, after all that were committed before.
func (tx *Tx) Commit() error {
	return tx.finish(func() {
		tx.store.add(tx.pending)
		for _, s := range tx.staged {
			if s.commit != nil {
				s.commit()
			}
		}
	})
}

// Rollback drops the transaction's messages and dedup keys. After Commit it changes nothing and
// returns [ErrTxDone], so that it can be deferred.
func (tx *Tx) Rollback() error {
	return tx.finish(func() {
		tx.store.free(tx)
		for _, s := range tx.staged {
			if s.rollback != nil {
				s.rollback()
			}
		}
	})
}

func (tx *Tx) finish(do func()) error {
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	if tx.done {
		return ErrTxDone
	}
	do()
	tx.pending, tx.keys, tx.staged, tx.done = nil, nil, nil, true
	return nil
}

// Outbox returns an outbox that replaces the one of a database in an application whose transactions
// are of type Tx.
//
// The store cannot observe those transactions. If the context belongs to a [postrider.Transactor],
// messages become visible to relays after the commit and are dropped after a rollback. Otherwise
// they are visible as soon as Enqueue returns, and stay if the transaction rolls back; that is
// enough for a process that enqueues as the last step before its commit. A transaction that is a
// [*Tx] of the same store always works as such.
//
// Messages of a key are delivered in the order in which the store observed the commits. For two
// concurrent commits this may differ from the order of the database.
func Outbox[Tx any](s *DB) postrider.Outbox[Tx] { return outbox[Tx]{s} }

type outbox[T any] struct{ store *DB }

func (o outbox[T]) Enqueue(ctx context.Context, tx T, msgs ...postrider.Message) error {
	_, err := o.Offer(ctx, tx, msgs...)
	return err
}

func (o outbox[T]) Offer(ctx context.Context, tx T, msgs ...postrider.Message) (repeats []int, err error) {
	if own, ok := any(tx).(*Tx); ok && own != nil {
		return o.store.Offer(ctx, own, msgs...)
	}
	held := o.store.Begin()
	repeats, err = o.store.Offer(ctx, held, msgs...)
	if err != nil {
		return nil, err
	}
	// Neither can fail, because held is not shared.
	postrider.AfterRollback(ctx, func() { _ = held.Rollback() })
	if !postrider.AfterCommit(ctx, func() { _ = held.Commit() }) {
		_ = held.Commit()
	}
	return repeats, nil
}

// accept validates the messages and returns the store's own copies.
func accept(msgs []postrider.Message) ([]entry, error) {
	if err := enqueue.Validate(msgs); err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(msgs))
	for _, m := range msgs {
		m = clone(m)
		if m.ID.IsZero() {
			m.ID = postrider.NewID()
		}
		entries = append(entries, entry{Message: m, at: time.Now()})
	}
	return entries, nil
}

func clone(m postrider.Message) postrider.Message {
	m.Payload = bytes.Clone(m.Payload)
	m.Headers = maps.Clone(m.Headers)
	return m
}
