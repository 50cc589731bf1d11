package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider/saga"
)

var (
	_ saga.Store[*Tx] = (*Sagas)(nil)
	_ saga.Maintainer = (*Sagas)(nil)
)

// Sagas keeps sagas in memory, in the transactions of a [DB]. It is safe for concurrent use.
type Sagas struct {
	store *DB
	all   map[sagaKey]*keptSaga // guarded by the store's lock, as is the rest
	freed chan struct{}         // closed and replaced when a transaction releases a lock
}

type sagaKey struct{ name, id string }

// keptSaga is a saga with its locks.
type keptSaga struct {
	committed *saga.Instance // nil until the transaction that creates it commits
	draft     *saga.Instance // uncommitted changes of locker
	locker    *Tx
	holders   map[string]*Tx // by step
}

// Do implements [saga.Store].
func (s *Sagas) Do(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	return s.store.Do(ctx, f)
}

// Create implements [saga.Store].
func (s *Sagas) Create(ctx context.Context, tx *Tx, i *saga.Instance) error {
	key := sagaKey{i.Name, i.ID}
	return s.whenFree(ctx, tx, key, func(now time.Time) error {
		if s.all[key] != nil {
			return saga.ErrExists
		}
		kept := &keptSaga{draft: i.Clone(), holders: make(map[string]*Tx)}
		kept.draft.Move(now)
		kept.draft.Version = 1
		s.all[key] = kept
		return s.lock(tx, key, kept)
	})
}

// Due implements [saga.Store].
func (s *Sagas) Due(ctx context.Context, known saga.Known) (next time.Duration, ok bool, err error) {
	err = s.store.locked(ctx, func(now time.Time) error {
		for _, kept := range s.all {
			kept.eachDue(known, func(st *saga.StepState) {
				if d := st.Due.Sub(now); !ok || d < next {
					next, ok = d, true
				}
			})
		}
		return nil
	})
	return next, ok, err
}

// eachDue calls f for every known step that will be due.
func (k *keptSaga) eachDue(known saga.Known, f func(st *saga.StepState)) {
	if k.committed == nil {
		return
	}
	for n := range k.committed.Steps {
		st := &k.committed.Steps[n]
		if !st.Due.IsZero() && slices.Contains(known[k.committed.Name], st.Name) {
			f(st)
		}
	}
}

// Take implements [saga.Store].
func (s *Sagas) Take(ctx context.Context, tx *Tx, known saga.Known) (i *saga.Instance, step string, err error) {
	err = s.store.locked(ctx, func(now time.Time) error {
		var found *keptSaga
		var first *saga.StepState
		for _, kept := range s.all {
			kept.eachDue(known, func(st *saga.StepState) {
				if !st.Due.After(now) && kept.holders[st.Name] == nil && (first == nil || st.Due.Before(first.Due)) {
					found, first = kept, st
				}
			})
		}
		if found == nil {
			return nil
		}
		i, step = found.committed.Clone(), first.Name
		i.Now = now
		return s.hold(tx, found, step)
	})
	return i, step, err
}

// Hold implements [saga.Store].
func (s *Sagas) Hold(ctx context.Context, tx *Tx, name, id, step string) (held bool, err error) {
	err = s.store.locked(ctx, func(time.Time) error {
		kept := s.all[sagaKey{name, id}]
		if kept == nil || kept.committed == nil || kept.committed.Step(step) == nil {
			return nil
		}
		if by := kept.holders[step]; by != nil {
			held = by == tx
			return nil
		}
		held = true
		return s.hold(tx, kept, step)
	})
	return held, err
}

// Lock implements [saga.Store].
func (s *Sagas) Lock(ctx context.Context, tx *Tx, name, id string) (i *saga.Instance, err error) {
	key := sagaKey{name, id}
	err = s.whenFree(ctx, tx, key, func(now time.Time) error {
		kept := s.all[key]
		if kept == nil {
			return saga.ErrNotFound
		}
		if kept.locker == nil {
			kept.draft = kept.committed.Clone()
			if err := s.lock(tx, key, kept); err != nil {
				return err
			}
		}
		i = kept.draft.Clone()
		i.Now = now
		return nil
	})
	return i, err
}

// Save implements [saga.Store].
func (s *Sagas) Save(ctx context.Context, tx *Tx, i *saga.Instance, c saga.Change) error {
	return s.store.locked(ctx, func(now time.Time) error {
		kept := s.all[sagaKey{i.Name, i.ID}]
		if kept == nil || kept.locker != tx || kept.draft.Version != i.Version {
			return saga.ErrConflict
		}
		d, from := kept.draft, i.Clone()
		d.Status, d.Cause, d.Finished, d.Updated = from.Status, from.Cause, from.Finished, now
		d.Version++
		if c.Data {
			d.Data = from.Data
		}
		for _, name := range c.Steps {
			if by := kept.holders[name]; by != nil && by != tx {
				return fmt.Errorf("memory: step %s is locked by another transaction", name)
			}
			*d.Step(name) = *from.Step(name)
		}
		for _, name := range c.Wake {
			if kept.holders[name] == nil {
				d.Step(name).Due = now
			}
		}
		if c.Signal != "" {
			same := func(g saga.Signal) bool { return g.Name == c.Signal }
			d.Signals = append(slices.DeleteFunc(d.Signals, same), from.Signals[slices.IndexFunc(from.Signals, same)])
		}
		i.Version++
		return nil
	})
}

// Try implements [saga.Store].
func (s *Sagas) Try(_ context.Context, tx *Tx, f func() error) error {
	s.store.mu.Lock()
	pending, keys, staged := len(tx.pending), len(tx.keys), len(tx.staged)
	s.store.mu.Unlock()
	failed := f()
	if failed == nil {
		return nil
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if tx.done {
		return failed
	}
	for _, key := range tx.keys[keys:] {
		if s.store.keys[key].tx == tx {
			delete(s.store.keys, key)
		}
	}
	for _, g := range slices.Backward(tx.staged[staged:]) {
		if g.rollback != nil {
			g.rollback()
		}
	}
	tx.pending, tx.keys, tx.staged = tx.pending[:pending], tx.keys[:keys], tx.staged[:staged]
	return failed
}

// maxStrangers is how many steps Maintain reports.
const maxStrangers = 10

// Maintain implements [saga.Maintainer].
func (s *Sagas) Maintain(ctx context.Context, keep time.Duration, known saga.Known) (strangers []saga.Stranger, err error) {
	err = s.store.locked(ctx, func(now time.Time) error {
		for key, kept := range s.all {
			i := kept.committed
			if i == nil || known[i.Name] == nil {
				continue
			}
			if keep > 0 && kept.locker == nil && i.Status.Finished() && now.Sub(i.Finished) > keep {
				delete(s.all, key)
			}
			for _, st := range i.Steps {
				if !st.Due.IsZero() && !st.Due.After(now) && !slices.Contains(known[i.Name], st.Name) && len(strangers) < maxStrangers {
					strangers = append(strangers, saga.Stranger{Name: i.Name, ID: i.ID, Step: st.Name})
				}
			}
		}
		return nil
	})
	slices.SortFunc(strangers, func(a, b saga.Stranger) int { return cmp.Compare(a.ID, b.ID) })
	return strangers, err
}

// whenFree waits until no other transaction has locked the saga, and calls do with the store
// locked.
func (s *Sagas) whenFree(ctx context.Context, tx *Tx, key sagaKey, do func(now time.Time) error) error {
	if tx.store != s.store {
		return errors.New("memory: transaction of another store")
	}
	for {
		var wait chan struct{}
		err := s.store.locked(ctx, func(now time.Time) error {
			if kept := s.all[key]; kept != nil && kept.locker != nil && kept.locker != tx {
				wait = s.freed
				return nil
			}
			return do(now)
		})
		if wait == nil || err != nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lock locks a saga until the transaction ends. The caller holds the store's lock.
func (s *Sagas) lock(tx *Tx, key sagaKey, kept *keptSaga) error {
	kept.locker = tx
	end := func() {
		kept.locker, kept.draft = nil, nil
		s.free()
	}
	return tx.stage(func() {
		kept.committed = kept.draft
		end()
	}, func() {
		if kept.committed == nil {
			delete(s.all, key)
		}
		end()
	})
}

// hold locks a step until the transaction ends. The caller holds the store's lock.
func (s *Sagas) hold(tx *Tx, kept *keptSaga, step string) error {
	kept.holders[step] = tx
	end := func() {
		delete(kept.holders, step)
		s.free()
	}
	return tx.stage(end, end)
}

func (s *Sagas) free() {
	close(s.freed)
	s.freed = make(chan struct{})
}
