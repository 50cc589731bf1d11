package memory_test

import (
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/memory"
)

func TestSuite(t *testing.T) {
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		b := memory.New()
		b.Fail(func(m postrider.Message) error {
			if m.Topic == "forbidden" {
				return postrider.Permanent(errors.New("forbidden"))
			}
			return nil
		})
		return brokertest.Harness{
			Create:    func(t *testing.T) string { return t.Name() },
			Publisher: func(*testing.T, string) postrider.Publisher { return b },
			Consumer: func(_ *testing.T, name, group string, limit int) postrider.Consumer {
				return b.Consumer(name, group, limit)
			},
			Abilities: brokertest.Abilities{Forbidden: "forbidden"},
		}
	})
}
