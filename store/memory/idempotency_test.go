package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/idempotency/idempotencytest"
	"github.com/postrider/postrider/store/memory"
)

func TestIdempotency(t *testing.T) {
	idempotencytest.Run(t, func(*testing.T) idempotencytest.Harness[*memory.Tx] {
		store := memory.Open(memory.Config{})
		return idempotencytest.Harness[*memory.Tx]{
			Store: store.IdempotencyKeys(),
			Begin: func(*testing.T) (*memory.Tx, func() error, func() error) {
				tx := store.Begin()
				return tx, tx.Commit, tx.Rollback
			},
		}
	})
}

// TestIdempotencyLeaseToTheMoment: a key can be claimed again exactly when its lease expires.
func TestIdempotencyLeaseToTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := memory.Open(memory.Config{}).IdempotencyKeys()
		c := idempotency.Claim{ID: idempotency.ID{Principal: "ann", Key: "k"}, Token: "1", Lease: time.Minute, Retention: time.Hour}
		for i, want := range []idempotency.State{idempotency.Claimed, idempotency.Busy, idempotency.Claimed} {
			c.Token = string(rune('1' + i))
			if outcome, err := keys.Claim(t.Context(), c); err != nil || outcome.State != want {
				t.Fatalf("after %d waits: %v, %v; want %v", i, outcome.State, err, want)
			}
			time.Sleep([]time.Duration{time.Minute - 1, 1, 0}[i])
		}
	})
}
