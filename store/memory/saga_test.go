package memory_test

import (
	"testing"

	"github.com/postrider/postrider/saga/sagatest"
	"github.com/postrider/postrider/store/memory"
)

func TestSagas(t *testing.T) {
	sagatest.Run(t, func(*testing.T) sagatest.Harness[*memory.Tx] {
		store := memory.Open(memory.Config{})
		sagas := store.Sagas()
		return sagatest.Harness[*memory.Tx]{Store: sagas, Admin: sagas, Records: store}
	})
}
