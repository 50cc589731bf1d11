package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider/test/campaign/world"
)

// httpKinds are the ways in which a receiver of webhooks can answer. Often only some keys are concerned, so that others are confirmed meanwhile.
func httpKinds() []Kind {
	var kinds []Kind
	for _, a := range []struct{ answer, doc string }{
		{"500", "the receiver answers 500"},
		{"hang", "the receiver does not answer"},
		{"redirect", "the receiver redirects"},
		{"slow", "the receiver takes its time"},
	} {
		kinds = append(kinds, Kind{
			Name: "http-" + a.answer, Doc: a.doc + ", to all requests or to those of some keys", Weight: 4, Destination: world.HTTP,
			Claims: []string{world.HTTP}, Shortest: 2 * time.Second, Longest: 8 * time.Second, Begin: answer(a.answer),
		})
	}
	return kinds
}

func answer(how string) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		share := []int{10, 30, 100}[random.IntN(3)]
		if err := w.Answer(ctx, how, share); err != nil {
			return nil, err
		}
		return &Running{
			Target: world.HTTP, Detail: fmt.Sprintf("%d %% of the keys", share), Touches: []string{world.HTTP},
			Heal: func(ctx context.Context) error { return w.Answer(ctx, "ok", 100) },
		}, nil
	}
}
