package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/postrider/postrider"
)

// testConcurrentWriters runs many writers that commit and roll back while members join and leave.
// The writers of a key are serialised, as those that lock the aggregate's row are, so the order of
// the key is known.
func testConcurrentWriters(t *testing.T, h Harness) {
	const writers, transactions = 16, 50
	b := newBoard(12)
	var running sync.WaitGroup
	for w := range writers {
		rng := rand.New(rand.NewPCG(rand.Uint64(), uint64(w)))
		running.Go(func() {
			for range transactions {
				if err := b.transact(t, h, rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stopped := make(chan struct{})
	go func() { running.Wait(); close(stopped) }()
	defer func() { <-stopped }()

	members := []*reader{join(t, h, "feed", longLease), join(t, h, "feed", longLease)}
	steps := 0
	eventually(t, "everything committed has arrived", func() bool {
		steps++
		if steps%15 == 0 { // one member leaves, another joins
			members[0].leave()
			members = append(members[1:], join(t, h, "feed", longLease))
		}
		for _, r := range members {
			share := r.balance()
			if len(share.Shards) > share.Quota {
				r.release(bare(share.Shards[share.Quota:])...)
			}
			batches := r.read(1 + steps%50)
			b.deliver(flatten(batches))
			r.settle(batches...)
		}
		select {
		case <-stopped:
			return b.complete() || t.Failed()
		default:
			return t.Failed()
		}
	})
	if t.Failed() {
		return
	}
	for _, r := range members {
		r.idle()
		r.leave()
	}
	joinAlone(t, h, "feed", longLease).idle()
	b.check(t)
}

// board records what the writers have committed and what the readers have received.
type board struct {
	mu        sync.Mutex
	keys      []*sync.Mutex // locked by a writer from before it enqueues for the key until its transaction has ended
	committed map[string][]postrider.ID
	delivered map[string][]postrider.ID
}

func newBoard(keys int) *board {
	b := &board{committed: make(map[string][]postrider.ID), delivered: make(map[string][]postrider.ID)}
	for range keys {
		b.keys = append(b.keys, new(sync.Mutex))
	}
	return b
}

// transact runs one transaction over a key of its own and then one to three shared keys. It writes
// the first message before it takes any lock, so that the database considers the transaction older
// than those that it waits for.
func (b *board) transact(t *testing.T, h Harness, rng *rand.Rand) error {
	ctx := context.WithoutCancel(t.Context()) // the test waits for its writers, even if it fails
	msgs := []postrider.Message{one(fmt.Sprint("own", rng.Uint64()))}
	tx := h.Begin(t)
	if err := tx.Enqueue(ctx, msgs...); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	keys := rng.Perm(len(b.keys))[:1+rng.IntN(3)]
	slices.Sort(keys) // all writers lock in one order
	for _, k := range keys {
		b.keys[k].Lock()
		defer b.keys[k].Unlock()
		more := series(fmt.Sprint("k", k), 1+rng.IntN(2))
		if err := tx.Enqueue(ctx, more...); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		msgs = append(msgs, more...)
	}
	if rng.IntN(4) == 0 {
		return tx.Rollback()
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, ids := range byKey(msgs) {
		b.committed[key] = append(b.committed[key], ids...)
	}
	return nil
}

func (b *board) deliver(msgs []postrider.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, ids := range byKey(msgs) {
		b.delivered[key] = append(b.delivered[key], ids...)
	}
}

// complete reports whether each key has at least as many delivered messages as committed ones.
func (b *board) complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.committed {
		if len(b.delivered[key]) < len(b.committed[key]) {
			return false
		}
	}
	return true
}

func (b *board) check(t *testing.T) {
	for key := range b.committed {
		compare(t, key, b.delivered[key], b.committed[key])
	}
	for key := range b.delivered {
		if b.committed[key] == nil {
			t.Errorf("key %q: got %d messages of transactions that did not commit", key, len(b.delivered[key]))
		}
	}
}
