package postridertest

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/postrider/postrider"
)

// Recorder is an outbox that passes messages on to another outbox and records them. It is safe for
// concurrent use.
//
// Messages of a transaction that was rolled back do not count as enqueued. The recorder learns of
// the rollback from the context, if it is that of a [postrider.Transactor]. It cannot see the end
// of any other transaction, and counts its messages as enqueued until [Recorder.RolledBack] is
// called.
//
// The assertions of the embedded View cover all committed messages, in the order in which they were
// enqueued. Those of [Recorder.In] cover one transaction, and can be made while it is open.
type Recorder[Tx any] struct {
	View
	outbox postrider.Outbox[Tx]
	log    *enqueuedLog
}

// Record returns a recorder around an outbox.
func Record[Tx any](outbox postrider.Outbox[Tx]) *Recorder[Tx] {
	log := &enqueuedLog{}
	return &Recorder[Tx]{View: View{log: log}, outbox: outbox, log: log}
}

// Enqueue implements [postrider.Outbox].
func (r *Recorder[Tx]) Enqueue(ctx context.Context, tx Tx, msgs ...postrider.Message) error {
	_, err := r.Offer(ctx, tx, msgs...)
	return err
}

// Offer implements [postrider.Outbox].
func (r *Recorder[Tx]) Offer(ctx context.Context, tx Tx, msgs ...postrider.Message) (repeats []int, err error) {
	msgs = slices.Clone(msgs)
	for i := range msgs {
		if msgs[i].ID.IsZero() {
			msgs[i].ID = postrider.NewID() // so that the record has the same ID as the store
		}
	}
	repeats, err = r.outbox.Offer(ctx, tx, msgs...)
	added := make([]*enqueued, len(msgs))
	for i, m := range msgs {
		added[i] = &enqueued{Message: copyMessage(m), tx: tx, fate: unseen}
		switch {
		case err != nil:
			added[i].fate, added[i].note = refused, err.Error()
		case slices.Contains(repeats, i):
			added[i].fate, added[i].note = repeated, "DedupKey "+m.DedupKey
		}
	}
	r.log.add(ctx, added)
	return repeats, err
}

// In returns the messages that one transaction enqueued, even while it is open, until it is known
// to have rolled back.
func (r *Recorder[Tx]) In(tx Tx) View { return View{log: r.log, one: true, tx: tx} }

// RolledBack tells the recorder that a transaction was rolled back whose end it cannot see.
func (r *Recorder[Tx]) RolledBack(tx Tx) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	for _, e := range r.log.entries {
		if e.fate == unseen && sameTx(e.tx, tx) {
			e.fate = rolledBack
		}
	}
}

// Reset forgets all recorded messages.
func (r *Recorder[Tx]) Reset() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.entries = nil
}

// fate is the outcome of a message.
type fate string

const (
	open       fate = "in a transaction that has not ended"
	committed  fate = "enqueued"
	unseen     fate = "enqueued, in a transaction whose end the recorder cannot see"
	rolledBack fate = "rolled back"
	repeated   fate = "left out as a repetition"
	refused    fate = "refused by the outbox"
)

type enqueued struct {
	postrider.Message
	tx   any
	fate fate
	note string
}

type enqueuedLog struct {
	mu      sync.Mutex
	entries []*enqueued
	counted func(postrider.Message) // called for each message that counts as enqueued; may be nil
}

func (l *enqueuedLog) add(ctx context.Context, added []*enqueued) {
	for _, e := range added {
		if e.fate != unseen {
			continue
		}
		e.fate = open
		if postrider.AfterCommit(ctx, func() { l.end(e, committed) }) {
			postrider.AfterRollback(ctx, func() { l.end(e, rolledBack) })
		} else {
			e.fate = unseen
			l.count(e.Message)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, added...)
}

func (l *enqueuedLog) end(e *enqueued, f fate) {
	l.mu.Lock()
	e.fate = f
	l.mu.Unlock()
	if f == committed {
		l.count(e.Message)
	}
}

func (l *enqueuedLog) count(m postrider.Message) {
	if l.counted != nil {
		l.counted(copyMessage(m))
	}
}

// sameTx compares transactions, of a type that may not be comparable.
func sameTx(a, b any) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}
