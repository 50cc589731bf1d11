package memory_test

import (
	"testing"

	"github.com/postrider/postrider/saga/sagatest"
	"github.com/postrider/postrider/store/memory"
)

func TestSagas(t *testing.T) {
	sagatest.Run(t, func(*testing.T) sagatest.Harness[*memory.Tx] {
		store := memory.New(memory.Config{})
		sagas := memory.NewSagas(store)
		return sagatest.Harness[*memory.Tx]{Store: sagas, Desk: sagas, Records: store}
	})
}
