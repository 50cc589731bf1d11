// Package broker finds brokers by name. Each broker's package registers a [Driver], which opens
// publishers and consumers from a URL or a configuration file. A program chooses its brokers by
// importing their packages; no other code names them.
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
	// Name is the broker's name in configuration files, such as "nats".
	Name string
	// Schemes are the URL schemes of the broker, such as "nats" and "tls".
	Schemes []string
	// Example is a sample URL, such as "nats://localhost:4222".
	Example string
	// Doc says in one sentence where messages go.
	Doc string
	// Options are the driver's own options, in addition to [Common].
	Options []Option
	// Publisher opens a publisher. It does not wait for the broker: if the broker is down, Publish
	// reports it. Errors concern the settings, all of them at once.
	Publisher func(*Settings) (postrider.Publisher, error)
	// Consumer opens a consumer of the name in the setting "name". Nil if the broker has nothing to
	// receive from.
	Consumer func(*Settings) (postrider.Consumer, error)
	// Create makes a topic, queue, subject or stream with the given name, as durable as the broker
	// allows without further configuration. An existing one is left unchanged. Meant for quick
	// starts, tests and benchmarks. Nil if there is nothing to create.
	Create func(ctx context.Context, s *Settings, name string) error
	// Bare sends a load with the broker's own client alone, with confirmations, as fast as that
	// client can. Benchmarks use it as the baseline for a relay.
	Bare func(ctx context.Context, s *Settings, load Load) error
}

// Load describes what a benchmark sends: messages of one size to one name, cycling through the keys
// "0" to Keys-1.
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

// Register makes a driver known. Broker packages call it from init. It panics if the name or a
// scheme is already registered, which is a programming error.
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

// Lookup returns the driver with the given name.
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

// ForURL returns the driver for the URL's scheme. The error does not contain the URL, which may
// hold a password.
func ForURL(address string) (Driver, error) {
	scheme, _, ok := strings.Cut(address, ":") // the rest may list several hosts, which package url cannot parse
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

// Open validates the settings and opens a publisher.
func (d Driver) Open(s *Settings) (postrider.Publisher, error) {
	if err := d.prepare(s); err != nil {
		return nil, err
	}
	return d.Publisher(s)
}

// Subscribe validates the settings and opens a consumer.
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
