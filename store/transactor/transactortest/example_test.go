package transactortest_test

import (
	"testing"

	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/transactor/transactortest"
)

// TestMine is the whole test of a transactor of one's own.
func TestMine(t *testing.T) {
	s := memory.Open(memory.Config{})
	transactortest.Run(t, transactortest.Harness[*memory.Tx]{Transactor: s, Outbox: s, Store: s})
}
