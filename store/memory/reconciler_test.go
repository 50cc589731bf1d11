package memory_test

import (
	"testing"

	"github.com/postrider/postrider/reconcile/reconciletest"
	"github.com/postrider/postrider/store/memory"
)

func TestReconcilers(t *testing.T) {
	reconciletest.Run(t, func(*testing.T) reconciletest.Harness[*memory.Tx] {
		return reconciletest.Harness[*memory.Tx]{Store: memory.Open(memory.Config{}).Reconciliations(), DB: memory.Open(memory.Config{})}
	})
}
