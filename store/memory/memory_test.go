package memory_test

import (
	"context"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/storetest"
)

func TestStore(t *testing.T) {
	for name, shards := range map[string]int{"Default": 8, "OneShard": 1, "ManyShards": 31} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(*testing.T) storetest.Harness {
				s := memory.Open(memory.Config{Shards: shards})
				return storetest.Harness{
					Store:  s,
					Begin:  func(*testing.T) storetest.Tx { return tx{s, s.Begin()} },
					Shards: shards,
					Admin:  s,
				}
			})
		})
	}
}

// tx is a transaction of the store with its outbox.
type tx struct {
	outbox postrider.Outbox[*memory.Tx]
	*memory.Tx
}

func (t tx) Enqueue(ctx context.Context, msgs ...postrider.Message) error {
	return t.outbox.Enqueue(ctx, t.Tx, msgs...)
}

func (t tx) Offer(ctx context.Context, msgs ...postrider.Message) ([]int, error) {
	return t.outbox.Offer(ctx, t.Tx, msgs...)
}
