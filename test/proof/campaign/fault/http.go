package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

// httpKinds are the ways in which a webhook receiver can respond. Often only some keys are
// affected, so that others are confirmed meanwhile.
func httpKinds() []Kind {
	var kinds []Kind
	for _, a := range []struct {
		answer, doc string
		longest     time.Duration
	}{
		{"429", "the receiver answers 429, with Retry-After: 2,", longEnough},
		{"500", "the receiver answers 500", longEnough},
		{"hang", "the receiver does not answer", 8 * time.Second},
		{"redirect", "the receiver redirects", longEnough},
		{"slow", "the receiver takes its time", 8 * time.Second},
	} {
		kinds = append(kinds, Kind{
			Name: "http-" + a.answer, Doc: a.doc + ", to all requests or to those of some keys", Weight: 4, Destination: world.HTTP,
			Claims: []string{world.HTTP}, Shortest: 2 * time.Second, Longest: a.longest, Begin: answer(a.answer, 10, 30, 100),
		})
	}
	return append(kinds, Kind{
		Name: "http-500-key", Doc: "the receiver answers 500 to one key, and takes all others", Weight: 4, Destination: world.HTTP,
		Claims: []string{world.HTTP}, Shortest: 4 * time.Second, Longest: 15 * time.Second, Begin: answer("500", 0),
	}, Kind{
		Name: "http-503-key", Doc: "the receiver answers 503 to some keys, as a limit for each tenant does, and takes all others", Weight: 4, Destination: world.HTTP,
		Claims: []string{world.HTTP}, Shortest: 4 * time.Second, Longest: 15 * time.Second, Begin: answer("503", 0, 10, 30),
	}, Kind{
		Name: "http-403", Doc: "the receiver answers 403 to everything, as after rights were revoked", Weight: 3, Destination: world.HTTP,
		Claims: []string{world.HTTP}, Shortest: 6 * time.Second, Longest: longEnough, Begin: answer("403", 100),
	}, Kind{
		Name: "http-404", Doc: "the receiver answers 404 to everything for the best part of a minute, as behind a wrong ingress", Weight: 2, Destination: world.HTTP,
		Claims: []string{world.HTTP}, Shortest: 40 * time.Second, Longest: 55 * time.Second, Begin: answer("404", 100),
	})
}

// answer makes the receiver respond in a given way to a share of the keys, in percent; 0 is a
// single key.
func answer(how string, shares ...int) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		share := shares[random.IntN(len(shares))]
		if err := w.Answer(ctx, how, share); err != nil {
			return nil, err
		}
		detail := fmt.Sprintf("%d %% of the keys", share)
		if share == 0 {
			detail = "one key"
		}
		refuses := ""
		if share == 100 && how != "slow" && how != "hang" {
			refuses = world.HTTP
		}
		return &Running{
			Target: world.HTTP, Detail: detail, Touches: []string{world.HTTP}, Refuses: refuses,
			Heal: func(ctx context.Context) error { return w.Answer(ctx, "ok", 100) },
		}, nil
	}
}
