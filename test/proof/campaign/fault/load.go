package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

// loadKinds are what producers and other services do with the log and the destinations. They touch
// nothing: whatever they do, other messages must not be affected.
func loadKinds() []Kind {
	shares := []string{theDatabase} // a large transaction takes longer than a failover lets it live
	return []Kind{
		{
			Name: world.HotKey, Doc: "most messages of a destination have the same key", Weight: 4,
			Shortest: 5 * time.Second, Longest: 15 * time.Second, Begin: load(world.HotKey, func(*world.World, *rand.Rand) int { return 0 }),
		},
		{
			Name: world.BulkTransaction, Doc: "one transaction writes very many messages, stays open, and is committed or rolled back", Weight: 3,
			Shortest: 2 * time.Second, Longest: 8 * time.Second, Takes: 8 * time.Second, Shares: shares,
			Begin: load(world.BulkTransaction, func(w *world.World, _ *rand.Rand) int { return w.Options.Bulk }),
		},
		{
			Name: world.TenantFlood, Doc: "one tenant writes thousands of messages at once", Weight: 4,
			Shortest: time.Second, Longest: 3 * time.Second, Takes: 2 * time.Second, Shares: shares,
			Begin: load(world.TenantFlood, func(w *world.World, random *rand.Rand) int { return w.Options.Bulk/20 + random.IntN(w.Options.Bulk/5) }),
		},
		{
			Name: world.Foreign, Doc: "somebody else publishes to our names: without IDs, with ours, or malformed", Weight: 6,
			Shortest: time.Second, Longest: 3 * time.Second, Takes: time.Second,
			Begin: load(world.Foreign, func(_ *world.World, random *rand.Rand) int { return 10 + random.IntN(40) }),
		},
	}
}

// load begins a load of a number of messages. The receiver of webhooks takes one at a time.
func load(kind string, messages func(*world.World, *rand.Rand) int) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error) {
		destination, err := pick(random, w.Destinations())
		if err != nil {
			return nil, err
		}
		l := world.Load{Kind: kind, Destination: destination, Messages: messages(w, random), Commit: random.IntN(3) > 0}
		if destination == world.HTTP && l.Messages > 1000 {
			l.Messages /= 10
		}
		detail := ""
		if l.Messages > 0 {
			detail = fmt.Sprintf("%d messages", l.Messages)
		}
		if kind == world.BulkTransaction && !l.Commit {
			detail += ", rolled back"
		}
		end, err := w.Load(ctx, l)
		if err != nil {
			return nil, err
		}
		tenant := ""
		if kind == world.TenantFlood {
			tenant = world.FloodTenant
		}
		return &Running{Target: destination, Detail: detail, Tenant: tenant, Heal: end}, nil
	}
}
