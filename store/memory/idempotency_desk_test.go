package memory_test

import (
	"testing"

	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/storetest"
)

func TestIdempotencyDesk(t *testing.T) {
	store := memory.NewIdempotency(memory.New(memory.Config{}))
	storetest.RunKeys(t, store, store)
}
