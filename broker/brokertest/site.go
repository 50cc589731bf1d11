package brokertest

import (
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest/flaky"
)

// Site is a cluster, or a server that requires TLS and a login, with the settings of a
// configuration file.
type Site struct {
	Driver string
	URL    string
	Values map[string]string
	// Member holds additional settings for a consumer that takes over quickly.
	Member map[string]string
	// NoDial means that the driver opens its connections itself, so that no faulty network can be
	// inserted.
	NoDial bool

	Abilities
}

// RunSite runs the suite through the driver alone. It does not test refused messages, where
// clusters do not differ from single servers.
func RunSite(t *testing.T, s Site) {
	d, err := broker.Lookup(s.Driver)
	if err != nil {
		t.Fatal(err)
	}
	subscribe := func(t *testing.T, name, group string, more ...map[string]string) postrider.Consumer {
		t.Helper()
		settings := s.settings(append(more, map[string]string{"name": name, "group": group + "-" + name})...)
		c, err := d.Subscribe(settings)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	limited := func(limit int) map[string]string { return map[string]string{"in_flight": fmt.Sprint(limit)} }
	Run(t, func(t *testing.T) Harness {
		h := Harness{
			Abilities: s.Abilities,
			Create: func(t *testing.T) string {
				name := fmt.Sprintf("site-%d", time.Now().UnixNano())
				if d.Create != nil {
					if err := d.Create(t.Context(), s.settings(), name); err != nil {
						t.Fatal(err)
					}
				}
				return name
			},
			Publisher: func(t *testing.T, address string) postrider.Publisher {
				settings := s.settings()
				if address != "" {
					settings.Dial = flaky.Through(address)
				}
				p, err := d.Open(settings)
				if err != nil {
					t.Fatal(err)
				}
				return p
			},
			Consumer: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				return subscribe(t, name, group, limited(limit))
			},
			Burying: func(t *testing.T, name, group, dead string) postrider.Consumer {
				return subscribe(t, name, group, map[string]string{"attempts": "2", "dead_letter": dead})
			},
			Member: func(t *testing.T, name, group string, limit int) postrider.Consumer {
				return subscribe(t, name, group, limited(limit), s.Member)
			},
		}
		if !s.NoDial {
			h.Server = flaky.Switchboard(t)
		}
		return h
	})
}

func (s *Site) settings(more ...map[string]string) *broker.Settings {
	values := maps.Clone(s.Values)
	if values == nil {
		values = make(map[string]string)
	}
	for _, m := range more {
		maps.Copy(values, m)
	}
	return &broker.Settings{URL: s.URL, Values: values, Logger: slog.New(slog.DiscardHandler)}
}
