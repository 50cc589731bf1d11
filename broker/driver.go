// Package broker is where destinations are found by name: each broker's package registers a [Driver], and whoever has a
// URL or a configuration file opens publishers and consumers through it. A program chooses its brokers by importing
// them; nothing else names them.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/postrider/postrider"
)

// Driver opens publishers and consumers of one kind of broker.
type Driver struct {
	// Name is what configuration files call the broker, such as "nats".
	Name string
	// Schemes are those of the URLs that mean it, such as "nats" and "tls".
	Schemes []string
	// Example is a URL to begin with, such as "nats://localhost:4222".
	Example string
	// Doc says in one sentence where messages go.
	Doc string
	// Options are what a destination can set, beside those that all have (see [Common]).
	Options []Option
	// Publisher opens a publisher. It does not wait for the broker: one that is down is found out by Publish. Errors are
	// about the settings, all of them at once.
	Publisher func(*Settings) (postrider.Publisher, error)
	// Consumer opens a consumer of Settings' option "name". It is nil where there is nothing to receive.
	Consumer func(*Settings) (postrider.Consumer, error)
	// Create makes a topic, queue, subject or stream with the name, as durable as the broker can on its own; one that is
	// there already is left as it is. For quick starts, tests and benchmarks. It is nil where there is nothing to make.
	Create func(ctx context.Context, s *Settings, name string) error
	// Bare sends a load with the broker's own client alone, confirmed, as fast as that client can: what a relay is
	// measured against.
	Bare func(ctx context.Context, s *Settings, load Load) error
}

// Load is what a benchmark sends: messages of one size to one name, their keys "0" to Keys-1 in turn.
type Load struct {
	Name     string
	Messages int
	Size     int // bytes of a payload
	Keys     int
}

var registry struct {
	sync.Mutex
	drivers []Driver
}

// Register makes a driver known. Packages of brokers call it when they are loaded. It panics when a name or a scheme is
// taken: that is a mistake in the program.
func Register(d Driver) {
	d.Create, d.Bare = d.checkedCreate(), d.checkedBare()
	registry.Lock()
	defer registry.Unlock()
	for _, other := range registry.drivers {
		if other.Name == d.Name {
			panic("broker: " + d.Name + " is registered twice")
		}
		for _, scheme := range d.Schemes {
			if slices.Contains(other.Schemes, scheme) {
				panic(fmt.Sprintf("broker: scheme %s belongs to both %s and %s", scheme, other.Name, d.Name))
			}
		}
	}
	registry.drivers = append(registry.drivers, d)
	slices.SortFunc(registry.drivers, func(a, b Driver) int { return cmp.Compare(a.Name, b.Name) })
}

// Drivers returns all registered drivers, by name.
func Drivers() []Driver {
	registry.Lock()
	defer registry.Unlock()
	return slices.Clone(registry.drivers)
}

// Lookup returns the driver with the name.
func Lookup(name string) (Driver, error) {
	var names []string
	for _, d := range Drivers() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return Driver{}, fmt.Errorf("broker: there is no broker %q: this program knows %q", name, names)
}

// ForURL returns the driver that the URL's scheme means. The error does not contain the URL, which may hold a password.
func ForURL(address string) (Driver, error) {
	scheme, _, ok := strings.Cut(address, ":") // the rest may be several hosts, which package url does not know
	if !ok || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+") != "" {
		return Driver{}, errors.New("broker: the address is not a URL such as nats://localhost:4222")
	}
	var schemes []string
	for _, d := range Drivers() {
		if slices.Contains(d.Schemes, scheme) {
			return d, nil
		}
		schemes = append(schemes, d.Schemes...)
	}
	return Driver{}, fmt.Errorf("broker: no broker has the scheme %q: this program knows %q", scheme, schemes)
}

// Open opens a publisher for the settings, after checking them.
func (d Driver) Open(s *Settings) (postrider.Publisher, error) {
	if err := d.prepare(s); err != nil {
		return nil, err
	}
	return d.Publisher(s)
}

// Subscribe opens a consumer for the settings, after checking them.
func (d Driver) Subscribe(s *Settings) (postrider.Consumer, error) {
	if d.Consumer == nil {
		return nil, fmt.Errorf("broker: %s has nothing to receive from", d.Name)
	}
	if err := d.prepare(s); err != nil {
		return nil, err
	}
	return d.Consumer(s)
}

func (d Driver) prepare(s *Settings) error {
	s.driver, s.options = d.Name, d.options()
	return d.Check(s.Values)
}

func (d Driver) checkedCreate() func(context.Context, *Settings, string) error {
	if d.Create == nil {
		return nil
	}
	return func(ctx context.Context, s *Settings, name string) error {
		if err := d.prepare(s); err != nil {
			return err
		}
		return d.Create(ctx, s, name)
	}
}

func (d Driver) checkedBare() func(context.Context, *Settings, Load) error {
	if d.Bare == nil {
		return nil
	}
	return func(ctx context.Context, s *Settings, load Load) error {
		if err := d.prepare(s); err != nil {
			return err
		}
		return d.Bare(ctx, s, load)
	}
}
