package memory_test

import (
	"testing"

	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/storetest"
)

func TestIdempotencyAdmin(t *testing.T) {
	store := memory.Open(memory.Config{}).IdempotencyKeys()
	storetest.RunKeys(t, store, store)
}
