package memory_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/memory"
)

func TestSuite(t *testing.T) {
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		b := memory.New()
		var full sync.Map
		b.Fail(func(m postrider.Message) error {
			if _, ok := full.Load(m.Topic); ok {
				return postrider.NameUnavailable(errors.New("full"))
			}
			return nil
		})
		return brokertest.Harness{
			Create:    func(t *testing.T) string { return "test " + postrider.NewID().String() },
			Publisher: func(*testing.T, string) postrider.Publisher { return b },
			Consumer: func(_ *testing.T, name, group string, limit int) postrider.Consumer {
				return b.Consumer(name, group, limit)
			},
			Full: func(*testing.T) (string, func()) {
				full.Store("full", true)
				return "full", func() { full.Delete("full") }
			},
			Abilities: brokertest.Abilities{NamesByType: true, Recalls: true},
		}
	})
}
