package world

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postrider/postrider/test/proof/campaign/proxy"
)

// Names of proxies, in addition to those of destinations. Each relay has a separate one to the
// database: see [World.RelayProxy].
const (
	ToProducers = "database:producer"
	ToConsumers = "database:consumer"
	ToPooler    = "database:pooler" // between PgBouncer and the database
	Pooler      = "pooler"          // in front of PgBouncer
	admin       = "database:admin"  // not affected by faults
)

const databasePrefix = "database:"

// RelayProxy returns the name of the proxy between a relay and the database, or between it and
// PgBouncer.
func (w *World) RelayProxy(relay string) string {
	if relay == w.pooledRelay() {
		return Pooler
	}
	return databasePrefix + relay
}

// pooledRelay returns the relay that goes through PgBouncer: the last one.
func (w *World) pooledRelay() string { return relayName(w.Options.Relays) }

// Proxy returns a proxy by its name; those of NATS are nats1, nats2 and nats3. It panics if there
// is none.
func (w *World) Proxy(name string) *proxy.Proxy {
	p := w.proxies[name]
	if p == nil {
		panic(fmt.Sprintf("there is no proxy %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(w.proxies)), ", ")))
	}
	return p
}

// BrokerProxies returns the names of the proxies in front of a destination.
func (w *World) BrokerProxies(destination string) []string {
	if destination == NATS {
		return []string{"nats1", "nats2", "nats3"}
	}
	return []string{destination}
}

// DatabaseProxies returns the names of the database proxies that faults may affect.
func (w *World) DatabaseProxies() []string {
	var names []string
	for name := range w.proxies {
		if name != admin && (strings.HasPrefix(name, databasePrefix) || name == Pooler) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// databaseProxies returns the proxies that lead to the primary.
func (w *World) databaseProxies() []*proxy.Proxy {
	var all []*proxy.Proxy
	for name, p := range w.proxies {
		if strings.HasPrefix(name, databasePrefix) {
			all = append(all, p)
		}
	}
	return all
}

// listen opens all proxies. They refuse connections until they have a target.
func (w *World) listen() error {
	names := []string{ToProducers, ToConsumers, ToPooler, Pooler, admin}
	for relay := 1; relay < w.Options.Relays; relay++ {
		names = append(names, databasePrefix+relayName(relay))
	}
	for _, d := range w.destinations() {
		names = append(names, w.BrokerProxies(d)...)
	}
	w.proxies = make(map[string]*proxy.Proxy)
	for _, name := range names {
		p, err := proxy.Listen(w.host+":0", "")
		if err != nil {
			return err
		}
		w.proxies[name] = p
	}
	return nil
}

// connect sets the targets of the proxies.
func (w *World) connect() error {
	targets := map[string]struct{ name, port string }{Pooler: {PgBouncer, ""}}
	for _, d := range w.destinations() {
		switch d {
		case HTTP:
			w.proxies[HTTP].Retarget(w.receiver)
		case Kafka:
			targets[Kafka] = struct{ name, port string }{Kafka, "proxied"}
		default:
			for _, name := range w.BrokerProxies(d) {
				targets[name] = struct{ name, port string }{name, ""}
			}
		}
	}
	for name, target := range targets {
		address, err := w.services.address(w.service(target.name), target.port)
		if err != nil {
			return err
		}
		w.proxies[name].Retarget(address)
	}
	w.followPrimary()
	return nil
}

func (w *World) closeProxies() error {
	var errs []error
	for _, p := range w.proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
