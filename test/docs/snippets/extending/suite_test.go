package spool

import (
	"os"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
)

//docs:begin suite
func TestSuite(t *testing.T) {
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		cfg := Config{URL: "spool:" + t.TempDir()}
		return brokertest.Harness{
			Create: func(t *testing.T) string {
				name := postrider.NewID().String()
				if err := os.MkdirAll(cfg.folder(name), 0o700); err != nil {
					t.Fatal(err)
				}
				return name
			},
			Publisher: func(t *testing.T, _ string) postrider.Publisher {
				p, err := NewPublisher(cfg)
				if err != nil {
					t.Fatal(err)
				}
				return p
			},
			Consumer: func(t *testing.T, name, _ string, limit int) postrider.Consumer {
				own := cfg
				own.Name, own.InFlight = name, limit
				c, err := NewConsumer(own)
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
			Missing: func(t *testing.T) (string, func()) {
				const name = "nobody has made this"
				return name, func() {
					if err := os.MkdirAll(cfg.folder(name), 0o700); err != nil {
						t.Fatal(err)
					}
				}
			},
			Abilities: brokertest.Abilities{OneAtATime: true},
		}
	})
}

//docs:end

// TestDriver opens a destination as a configuration file does.
func TestDriver(t *testing.T) {
	s := &broker.Settings{URL: "spool:" + t.TempDir(), Values: map[string]string{"format": "raw"}}
	d, err := broker.ForURL(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Create(t.Context(), s, "orders"); err != nil {
		t.Fatal(err)
	}
	p, err := d.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	m.Topic = "orders"
	if errs := p.Publish(t.Context(), []postrider.Message{m}); errs != nil {
		t.Fatal(errs)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
