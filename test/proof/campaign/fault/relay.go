package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

func relayKinds() []Kind {
	relay := []string{record.Relay}
	shares := []string{theRelays}
	return []Kind{
		{
			Name: "relay-kill", Doc: "a relay is killed, and started again later", Weight: 12, Shortest: time.Second, Longest: 8 * time.Second,
			Shares: shares, Begin: killProcess(world.Relay, relay),
		},
		{
			Name: "relay-pause", Doc: "a relay does nothing until its lease has ended, and then goes on as if nothing had happened", Zombie: true,
			Weight: 10, Shortest: 4 * time.Second, Longest: 14 * time.Second, Shares: shares, Begin: pauseProcess(world.Relay, relay),
		},
		{
			Name: "relay-stop", Doc: "a relay is asked to end, and started again later", Clean: true, Weight: 10,
			Shortest: time.Second, Longest: 6 * time.Second, Shares: shares, Begin: stopRelay,
		},
		{
			Name: "rolling-upgrade", Doc: "all relays are replaced one by one, by those of another build", Clean: true, Weight: 5,
			Shortest: time.Second, Longest: 2 * time.Second, Takes: 8 * time.Second, Claims: shares, Begin: upgrade,
		},
		{
			Name: "relay-clock", Doc: "a relay's clock is wrong by hours, and jumps; then the relay is killed", Weight: 5, Needs: []Need{Skewed},
			Shortest: 6 * time.Second, Longest: 15 * time.Second, Takes: 2 * time.Second, Shares: shares, Begin: skewClock,
		},
		{
			Name: "relay-memory", Doc: "a relay is started again with little memory (GOMEMLIMIT), and later as it was", Weight: 4,
			Shortest: 6 * time.Second, Longest: 20 * time.Second, Takes: 2 * time.Second, Shares: shares, Begin: limitMemory,
		},
	}
}

func killProcess(role world.Role, touches []string) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(_ context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		p, err := healthy(w, random, role)
		if err != nil {
			return nil, err
		}
		if err := p.Kill(); err != nil {
			return nil, err
		}
		return &Running{Target: p.Name(), Touches: touches, Heal: func(context.Context) error { return p.Start() }}, nil
	}
}

func pauseProcess(role world.Role, touches []string) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(_ context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		p, err := healthy(w, random, role)
		if err != nil {
			return nil, err
		}
		if err := p.Pause(); err != nil {
			return nil, err
		}
		return &Running{Target: p.Name(), Touches: touches, Heal: func(context.Context) error { return p.Resume() }}, nil
	}
}

func stopRelay(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	p, err := healthy(w, random, world.Relay)
	if err != nil {
		return nil, err
	}
	detail := stop(ctx, p)
	return &Running{Target: p.Name(), Detail: detail, Touches: []string{record.Relay}, Heal: func(context.Context) error { return p.Start() }}, nil
}

// stop stops a process with the timeout of a service manager, and returns what went wrong: a relay
// that cannot reach its database reports so when it exits. The process has ended in any case.
func stop(ctx context.Context, p *world.Process) (trouble string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// upgrade replaces one build by the other, in alternating directions.
func upgrade(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	next := w.Options.Postrider
	if relays := w.Relays(); w.Options.Older != "" && relays[0].Path() == next {
		next = w.Options.Older
	}
	var done []string
	detail := "to " + next
	for _, p := range w.Relays() {
		if trouble := stop(ctx, p); trouble != "" {
			detail += "; " + trouble
		}
		p.Become(next)
		if err := p.Start(); err != nil {
			return nil, err
		}
		if err := w.Lives(ctx, p); err != nil {
			detail += "; " + err.Error()
		}
		done = append(done, p.Name())
	}
	return &Running{Target: strings.Join(done, " "), Detail: detail, Touches: []string{record.Relay}, Heal: nothing}, nil
}

func limitMemory(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	p, err := healthy(w, random, world.Relay)
	if err != nil {
		return nil, err
	}
	limit := fmt.Sprintf("GOMEMLIMIT=%dMiB", []int{16, 32, 64}[random.IntN(3)])
	again := func(ctx context.Context, env ...string) (trouble string, err error) {
		trouble = stop(ctx, p)
		p.Become(p.Path(), env...)
		return trouble, p.Start()
	}
	trouble, err := again(ctx, limit)
	if err != nil {
		return nil, err
	}
	detail := strings.TrimSuffix(limit+"; "+trouble, "; ")
	return &Running{Target: p.Name(), Detail: detail, Touches: []string{record.Relay}, Heal: func(ctx context.Context) error {
		_, err := again(ctx)
		return err
	}}, nil
}

func skewClock(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	p, err := healthy(w, random, world.Relay)
	if err != nil {
		return nil, err
	}
	wrong := time.Duration(1+random.IntN(36)) * time.Hour
	if random.IntN(2) == 0 {
		wrong = -wrong
	}
	before := p.Path()
	_ = stop(ctx, p)
	p.Become(w.Options.Skewed, world.SkewVariable+"="+wrong.String())
	if err := p.Start(); err != nil {
		return nil, err
	}
	return &Running{
		Target: p.Name(), Detail: fmt.Sprintf("wrong by %v, the other way every other %v", wrong, world.SkewPeriod), Touches: []string{record.Relay},
		Heal: func(context.Context) error {
			if err := p.Kill(); err != nil {
				return err
			}
			p.Become(before)
			return p.Start()
		},
	}, nil
}
