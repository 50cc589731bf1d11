// Package fault is what goes wrong in a campaign: kinds of faults that can be begun and healed, and a schedule that a seed decides.
//
// A kind's victim is drawn when it begins, among those that are well. So a schedule repeats exactly from its seed, and what it hits nearly so.
package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

// Kind is one way for something to go wrong.
type Kind struct {
	Name string
	Doc  string
	// Zombie: a relay may send after its lease has ended, without being able to know; or what it sent may arrive then.
	Zombie bool
	// Clean: relays stop as they should, no duplicate may come of it.
	Clean bool
	// Weight is how often it is drawn, beside others.
	Weight int
	// Shortest and Longest bound the time from the end of Begin to Heal.
	Shortest, Longest time.Duration
	// Takes is about how long Begin and Heal take together, where that is more than a moment.
	Takes time.Duration
	// Claims are things that it needs for itself, Shares those that it only must not find claimed by another.
	Claims, Shares []string
	// Needs is what it cannot do without.
	Needs []Need
	// Destination is the one that it hits, if it is always the same.
	Destination string
	// Begin lets it happen. What it hits is drawn from random alone.
	Begin func(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error)
}

// Need is something that a kind cannot do without.
type Need string

// The needs.
const (
	Root   Need = "root"   // network namespaces and disk images
	Skewed Need = "skewed" // a binary whose clock can be wrong: world.BuildSkewed
)

// Things that kinds claim or share, beside the names of destinations.
const (
	theDatabase = "database" // the primary, its standby, and who is which
	thePaths    = "paths"    // the proxies in front of the database
	theRelays   = "relays"   // all relays
)

// Running is a fault that has begun.
type Running struct {
	Target  string   // relay2
	Detail  string   // more about it
	Touches []string // as record.Event has it
	// Heal ends it, and returns when what was hit works again. It is called once.
	Heal func(ctx context.Context) error
}

// Kinds are all kinds, by name.
func Kinds() []Kind {
	all := slices.Concat(relayKinds(), clientKinds(), databaseKinds(), sqlKinds(), networkKinds(), brokerKinds(), httpKinds())
	slices.SortFunc(all, func(a, b Kind) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// Possible says why a kind cannot be done on this machine, or nil. It needs no world.
func (k Kind) Possible() error {
	if slices.Contains(k.Needs, Root) {
		return world.Rootless()
	}
	return nil
}

// Available says why a kind cannot be done in a world, or nil.
func (k Kind) Available(w *world.World) error {
	switch {
	case slices.Contains(k.Needs, Root) && w.Options.Plain:
		return errors.New("this world has neither disk images nor network namespaces")
	case slices.Contains(k.Needs, Skewed) && w.Options.Skewed == "":
		return errors.New("this world has no binary whose clock can be wrong")
	case k.Destination != "" && !slices.Contains(w.Destinations(), k.Destination):
		return fmt.Errorf("this world has no %s", k.Destination)
	}
	return nil
}

// Excludes reports whether two kinds must not run at the same time.
func (k Kind) Excludes(other Kind) bool {
	meets := func(claims, things []string) bool {
		return slices.ContainsFunc(claims, func(c string) bool { return slices.Contains(things, c) })
	}
	return meets(k.Claims, other.Claims) || meets(k.Claims, other.Shares) || meets(k.Shares, other.Claims)
}

// errNobody is returned by Begin when all that could be hit are hit already.
var errNobody = errors.New("there is nobody left to hit")

func pick[T any](random *rand.Rand, from []T) (T, error) {
	if len(from) == 0 {
		var none T
		return none, errNobody
	}
	return from[random.IntN(len(from))], nil
}

// healthy draws a process of a role that runs and is not paused.
func healthy(w *world.World, random *rand.Rand, role world.Role) (*world.Process, error) {
	return pick(random, slices.DeleteFunc(w.Processes(role), func(p *world.Process) bool { return p.PID() == 0 || p.Paused() }))
}

// nothing is how a fault heals that is over when it has begun.
func nothing(context.Context) error { return nil }
