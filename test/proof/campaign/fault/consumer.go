package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// theConsumers are all consumers and the receiver of webhooks, whose handlers misbehave together.
const theConsumers = "consumers"

// consumerKinds are mistakes and misfortunes of handlers: the effect of each message must still
// happen once, and in order.
func consumerKinds() []Kind {
	var kinds []Kind
	for _, m := range []struct {
		manner, doc string
		shares      []int
	}{
		{"panic", "some calls of handlers panic", []int{2, 10, 30}},
		{"hang", "some calls of handlers do nothing until their deadline", []int{2, 10}},
		{"provider", "handlers say that a provider that they need is away (postrider.Unavailable)", []int{100}},
	} {
		kinds = append(kinds, Kind{
			Name: "consumer-" + m.manner, Doc: m.doc, Weight: 5, Claims: []string{theConsumers},
			Shortest: 3 * time.Second, Longest: 12 * time.Second, Begin: misbehave(m.manner, m.shares),
		})
	}
	return append(kinds, Kind{
		Name: "consumer-rebalance", Doc: "another consumer joins and leaves, again and again", Weight: 5,
		Shortest: 8 * time.Second, Longest: 20 * time.Second, Takes: time.Second, Begin: storm,
	})
}

// misbehave makes the handlers of all consumers misbehave. What the receiver of webhooks does not
// handle, its relay sends again.
func misbehave(manner string, shares []int) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		share := shares[random.IntN(len(shares))]
		all := slices.Concat(w.Processes(world.Consumer), w.Processes(world.Receiver))
		calm := func(ctx context.Context) error {
			var errs []error
			for _, p := range all {
				errs = append(errs, w.Behave(ctx, p, "ok", 100))
			}
			return errors.Join(errs...)
		}
		var names []string
		for _, p := range all {
			if err := w.Behave(ctx, p, manner, share); err != nil {
				return nil, errors.Join(err, calm(ctx))
			}
			names = append(names, p.Name())
		}
		return &Running{
			Target: strings.Join(names, " "), Detail: fmt.Sprintf("%d %% of the calls", share),
			Touches: []string{record.Consumer, world.HTTP}, Heal: calm,
		}, nil
	}
}

// storm starts and stops another consumer until it is healed.
func storm(_ context.Context, w *world.World, random *rand.Rand) (*Running, error) {
	p, err := pick(random, w.Processes(world.Guest))
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	stays := time.Duration(1000+random.IntN(2000)) * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var going sync.WaitGroup
	going.Go(func() {
		ticks := time.NewTicker(stays)
		defer ticks.Stop()
		for here := true; ; here = !here {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			if here {
				_ = stop(ctx, p) // a consumer that had not yet begun ends by the signal
			} else {
				_ = p.Start() // or the next time
			}
		}
	})
	return &Running{
		Target: p.Name(), Detail: fmt.Sprintf("every %v", stays), Touches: []string{record.Consumer},
		Heal: func(ctx context.Context) error {
			cancel()
			going.Wait()
			_ = stop(ctx, p)
			if p.PID() != 0 {
				return errors.New(p.Name() + " does not leave")
			}
			return nil
		},
	}, nil
}
