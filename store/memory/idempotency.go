package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/idempotency"
)

var _ idempotency.Store[*Tx] = (*Idempotency)(nil)

// Idempotency keeps the keys of HTTP requests in memory, for transactions of a [DB].
type Idempotency struct {
	store *DB // its lock guards keys too
	keys  map[idempotency.ID]*key
}

// key is the state of one key. Its contents may be out of date: the times in it decide.
type key struct {
	claim   idempotency.Claim // no claim if the token is empty
	leased  time.Time         // until then
	expires time.Time
	answer  *idempotency.Answer // nil: not done
	holder  *Tx                 // the open transaction that has claimed or completed it
	pending *idempotency.Answer // the answer that holder will commit
}

// Claim implements [idempotency.Store].
func (i *Idempotency) Claim(ctx context.Context, c idempotency.Claim) (outcome idempotency.Outcome, err error) {
	if c.Lease <= 0 {
		return outcome, fmt.Errorf("memory: lease is %v: want a positive duration", c.Lease)
	}
	err = i.store.locked(ctx, func(now time.Time) error {
		k := i.at(c.ID)
		if known, ok := k.look(c, now, nil); ok {
			outcome = known
			return nil
		}
		if !k.expires.After(now) {
			k.expires = now.Add(c.Retention)
		}
		k.claim, k.leased, k.answer = c, now.Add(c.Lease), nil
		return nil
	})
	return outcome, err
}

// ClaimIn implements [idempotency.Store].
func (i *Idempotency) ClaimIn(ctx context.Context, tx *Tx, c idempotency.Claim) (outcome idempotency.Outcome, err error) {
	if tx.store != i.store {
		return outcome, errForeignTx
	}
	err = i.store.locked(ctx, func(now time.Time) error {
		k := i.at(c.ID)
		known, ok := k.look(c, now, tx)
		if ok {
			outcome = known
			return nil
		}
		return k.hold(tx)
	})
	return outcome, err
}

// Complete implements [idempotency.Store].
func (i *Idempotency) Complete(ctx context.Context, tx *Tx, c idempotency.Claim, a idempotency.Answer) error {
	if tx.store != i.store {
		return errForeignTx
	}
	stored := copyAnswer(a)
	return i.store.locked(ctx, func(now time.Time) error {
		k := i.at(c.ID)
		if c.Lease > 0 {
			if k.claim.Token != c.Token || k.holder != nil && k.holder != tx {
				return idempotency.ErrLost
			}
			if k.answer != nil {
				return sameAnswer(*k.answer, a)
			}
		} else if k.holder != tx {
			return idempotency.ErrLost
		}
		if k.pending != nil {
			return sameAnswer(*k.pending, a)
		}
		if err := k.hold(tx); err != nil {
			return err
		}
		k.pending = &stored
		return tx.stage(func() {
			if c.Lease == 0 {
				k.claim, k.leased, k.expires = c, now, now.Add(c.Retention)
			}
			k.answer = &stored
		}, nil)
	})
}

// Save implements [idempotency.Store].
func (i *Idempotency) Save(ctx context.Context, c idempotency.Claim, a idempotency.Answer) error {
	return i.store.Do(ctx, func(ctx context.Context, tx *Tx) error { return i.Complete(ctx, tx, c, a) })
}

// Release implements [idempotency.Store].
func (i *Idempotency) Release(ctx context.Context, c idempotency.Claim) error {
	return i.store.locked(ctx, func(time.Time) error {
		if k := i.keys[c.ID]; k != nil && k.claim.Token == c.Token && k.answer == nil && k.holder == nil {
			delete(i.keys, c.ID)
		}
		return nil
	})
}

// Purge implements [idempotency.Store].
func (i *Idempotency) Purge(ctx context.Context) (removed int, err error) {
	err = i.store.locked(ctx, func(now time.Time) error {
		for id, k := range i.keys {
			if k.holder == nil && !k.expires.After(now) {
				delete(i.keys, id)
				if k.claim.Token != "" {
					removed++
				}
			}
		}
		return nil
	})
	return removed, err
}

func (i *Idempotency) at(id idempotency.ID) *key {
	k := i.keys[id]
	if k == nil {
		k = &key{}
		i.keys[id] = k
	}
	return k
}

// look returns the outcome of a claim that the state of the key already decides; known is false if
// the key is free.
func (k *key) look(c idempotency.Claim, now time.Time, tx *Tx) (_ idempotency.Outcome, known bool) {
	if k.expires.After(now) {
		switch {
		case k.claim.Fingerprint != c.Fingerprint:
			return idempotency.Outcome{State: idempotency.Mismatch}, true
		case k.answer != nil:
			return idempotency.Outcome{State: idempotency.Done, Answer: copyAnswer(*k.answer)}, true
		case k.claim.Token == c.Token:
			return idempotency.Outcome{State: idempotency.Claimed}, true
		case k.leased.After(now):
			return idempotency.Outcome{State: idempotency.Busy}, true
		}
	}
	if k.holder != nil && k.holder != tx {
		return idempotency.Outcome{State: idempotency.Busy}, true
	}
	return idempotency.Outcome{}, false
}

// hold reserves the key for tx until tx ends.
func (k *key) hold(tx *Tx) error {
	if k.holder == tx {
		return nil
	}
	free := func() { k.holder, k.pending = nil, nil }
	if err := tx.stage(free, free); err != nil {
		return err
	}
	k.holder = tx
	return nil
}

var errForeignTx = errors.New("memory: transaction of another store")

func copyAnswer(a idempotency.Answer) idempotency.Answer {
	var b idempotency.Answer
	data, err := a.MarshalBinary()
	if err == nil {
		err = b.UnmarshalBinary(data)
	}
	if err != nil {
		panic(err) // cannot fail: the value was just encoded
	}
	return b
}

// sameAnswer reports whether two answers are equal, for completing a key again.
func sameAnswer(a, b idempotency.Answer) error {
	x, errX := a.MarshalBinary()
	y, errY := b.MarshalBinary()
	if errX != nil || errY != nil || string(x) != string(y) {
		return idempotency.ErrLost
	}
	return nil
}
