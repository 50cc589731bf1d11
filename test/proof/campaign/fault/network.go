package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/proxy"
	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

func networkKinds() []Kind {
	paths := []string{thePaths}
	return []Kind{
		{
			Name: "proxy-reset", Doc: "all connections on one path are reset, several times", Weight: 12,
			Shortest: time.Second, Longest: 5 * time.Second, Shares: paths, Begin: resetAgain,
		},
		{
			Name: "proxy-drop-answers", Doc: "requests arrive on one path, answers do not; then its connections are reset", Weight: 10,
			Shortest: time.Second, Longest: 6 * time.Second, Shares: paths, Begin: behave(anyPath, mute),
		},
		{
			Name: "proxy-delay", Doc: "everything on one path is late by up to 400 ms", Weight: 8,
			Shortest: 4 * time.Second, Longest: 14 * time.Second, Shares: paths, Begin: behave(anyPath, delay),
		},
		{
			Name: "proxy-slices", Doc: "everything on one path arrives in pieces of a few bytes", Weight: 6,
			Shortest: 2 * time.Second, Longest: 6 * time.Second, Shares: paths, Begin: behave(anyPath, slice),
		},
		{
			Name: "proxy-cut-after", Doc: "each connection on one path is reset after some bytes, in the middle of whatever it carries", Weight: 10,
			Shortest: 2 * time.Second, Longest: 6 * time.Second, Shares: paths, Begin: behave(anyPath, cutAfter),
		},
		{
			Name: "broker-silent", Doc: "nothing passes between relays and a broker, and nobody is told; what was sent arrives late", Zombie: true,
			Weight: 6, Shortest: 3 * time.Second, Longest: 12 * time.Second, Begin: behave(brokerPath, silent),
		},
		{
			Name: "database-silent", Doc: "nothing passes between one relay and the database for longer than its lease, and nobody is told", Weight: 8,
			Shortest: 4 * time.Second, Longest: 14 * time.Second, Shares: paths, Begin: behave(relayPath, silent),
		},
		{
			Name: "net-cut", Doc: "a relay is cut off from everything, and nobody is told: not even TCP hears of it", Zombie: true, Weight: 8,
			Needs: []Need{Root}, Shortest: 4 * time.Second, Longest: 14 * time.Second, Shares: []string{theRelays}, Begin: cutOff,
		},
	}
}

// path is the target of a proxy fault: one or several related proxies.
type path struct {
	name    string
	proxies []string
	touches []string
}

func anyPath(w *world.World) []path { return append(databasePaths(w), brokerPath(w)...) }

func brokerPath(w *world.World) []path {
	var all []path
	for _, d := range w.Destinations() {
		all = append(all, path{d, w.BrokerProxies(d), []string{d}})
	}
	return all
}

func databasePaths(w *world.World) []path {
	return append(relayPath(w),
		path{world.ToProducers, []string{world.ToProducers}, []string{record.Producer}},
		path{world.ToConsumers, []string{world.ToConsumers}, []string{record.Consumer}},
		path{world.ToPooler, []string{world.ToPooler}, []string{record.Database, record.Producer}},
	)
}

// relayPath is the path between one relay and the database. Producers share the pooler with the
// last relay.
func relayPath(w *world.World) []path {
	var all []path
	for _, p := range w.Relays() {
		name := w.RelayProxy(p.Name())
		touches := []string{record.Database}
		if name == world.Pooler {
			touches = append(touches, record.Producer)
		}
		all = append(all, path{name, []string{name}, touches})
	}
	return all
}

// draw selects a path that works now.
func draw(w *world.World, random *rand.Rand, paths func(*world.World) []path) (path, error) {
	return pick(random, slices.DeleteFunc(paths(w), func(p path) bool {
		return slices.ContainsFunc(p.proxies, func(name string) bool { return w.Proxy(name).Behaviour() != proxy.Behaviour{} })
	}))
}

// behave changes the behavior of the proxies of a path.
func behave(paths func(*world.World) []path, how func(*rand.Rand) (proxy.Behaviour, string),
) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(_ context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		p, err := draw(w, random, paths)
		if err != nil {
			return nil, err
		}
		behaviour, detail := how(random)
		set := func(b proxy.Behaviour) {
			for _, name := range p.proxies {
				w.Proxy(name).Behave(b)
			}
		}
		set(behaviour)
		return &Running{Target: p.name, Detail: detail, Touches: p.touches, Heal: func(context.Context) error {
			set(proxy.Behaviour{})
			return nil
		}}, nil
	}
}

func mute(*rand.Rand) (proxy.Behaviour, string)   { return proxy.Behaviour{Mute: true}, "" }
func silent(*rand.Rand) (proxy.Behaviour, string) { return proxy.Behaviour{Silent: true}, "" }

func delay(random *rand.Rand) (proxy.Behaviour, string) {
	d := time.Duration(20+random.IntN(380)) * time.Millisecond
	return proxy.Behaviour{Delay: d}, d.String()
}

func slice(random *rand.Rand) (proxy.Behaviour, string) {
	n := 1 + random.IntN(16)
	return proxy.Behaviour{Slice: n}, fmt.Sprintf("%d bytes", n)
}

// cutAfter draws a limit evenly over orders of magnitude, because small and large limits cut at
// different points of the protocol.
func cutAfter(random *rand.Rand) (proxy.Behaviour, string) {
	n := int64(100) << random.IntN(12)
	return proxy.Behaviour{CutAfter: n}, fmt.Sprintf("after %d bytes or more", n)
}

func resetAgain(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	p, err := draw(w, random, anyPath)
	if err != nil {
		return nil, err
	}
	every := time.Duration(200+random.IntN(800)) * time.Millisecond
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for loop.Err() == nil {
			for _, name := range p.proxies {
				w.Proxy(name).Reset()
			}
			select {
			case <-loop.Done():
			case <-time.After(every):
			}
		}
	}()
	return &Running{Target: p.name, Detail: "every " + every.String(), Touches: p.touches, Heal: func(context.Context) error {
		cancel()
		<-ended
		return nil
	}}, nil
}

func cutOff(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	p, err := healthy(w, random, world.Relay)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(strings.TrimPrefix(p.Name(), "relay"))
	if err != nil {
		return nil, err
	}
	answersOnly := random.IntN(3) == 0
	if err := w.Cut(ctx, number, answersOnly); err != nil {
		return nil, err
	}
	detail := "both ways"
	if answersOnly {
		detail = "what it sends arrives, answers do not"
	}
	return &Running{Target: p.Name(), Detail: detail, Touches: []string{record.Relay, record.Database},
		Heal: func(ctx context.Context) error { return w.Join(ctx, number, answersOnly) }}, nil
}
