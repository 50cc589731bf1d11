package idempotencytest_test

import (
	"testing"

	"github.com/postrider/postrider/idempotency/idempotencytest"
	"github.com/postrider/postrider/store/memory"
)

// A custom store runs the suite in a test like this one.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestMyStore(t *testing.T)
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
	// Output:
}
