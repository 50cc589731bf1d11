// Package fault defines the faults of a campaign: kinds that can begin and heal, and a schedule
// that a seed determines.
//
// The victim of a fault is drawn when it begins, among the healthy processes. A seed therefore
// repeats its schedule exactly, and its victims approximately.
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

// Kind is a kind of fault.
type Kind struct {
	Name string
	Doc  string
	// Zombie marks kinds after which a relay may send although its lease has expired, without being
	// able to know it, or after which earlier sends may arrive.
	Zombie bool
	// Clean marks kinds in which relays stop cleanly, so that they must cause no duplicates.
	Clean bool
	// Weight is the relative frequency.
	Weight int
	// Shortest and Longest bound the time from the end of Begin to Heal.
	Shortest, Longest time.Duration
	// Takes is the approximate total time of Begin and Heal, if it is significant.
	Takes time.Duration
	// Claims are resources that the kind uses exclusively, Shares those that no other kind may
	// claim meanwhile.
	Claims, Shares []string
	// Needs are the requirements of the kind.
	Needs []Need
	// Destination is the affected destination, if it is always the same.
	Destination string
	// Begin starts the fault. Its victim depends only on random.
	Begin func(ctx context.Context, w *world.World, random *rand.Rand) (*Running, error)
}

// Need is a requirement of a kind.
type Need string

// The requirements.
const (
	Root   Need = "root"   // network namespaces and disk images
	Skewed Need = "skewed" // a binary whose clock can be wrong: world.BuildSkewed
)

// Resources that kinds claim or share, in addition to the names of destinations.
const (
	theDatabase = "database" // the primary, its standby, and their roles
	thePaths    = "paths"    // the proxies in front of the database
	theRelays   = "relays"   // all relays
)

// Running is a fault that has begun.
type Running struct {
	Target  string   // relay2
	Detail  string   // additional information
	Touches []string // as in record.Event
	Tenant  string   // floods the target
	// Refuses is a destination that accepts nothing, so that the product must name the cause.
	Refuses string
	// Again is the number of messages that the product was asked to send again.
	Again int64
	// Heal ends the fault, and returns when its victim works again. It is called once.
	Heal func(ctx context.Context) error
}

// Kinds returns all kinds, sorted by name.
func Kinds() []Kind {
	all := slices.Concat(relayKinds(), clientKinds(), databaseKinds(), sqlKinds(), networkKinds(), brokerKinds(), httpKinds(),
		consumerKinds(), operatorKinds(), loadKinds())
	slices.SortFunc(all, func(a, b Kind) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// Possible returns the reason why this machine does not support a kind, or nil. It needs no world.
func (k Kind) Possible() error {
	if slices.Contains(k.Needs, Root) {
		return world.Rootless()
	}
	return nil
}

// Available returns the reason why a world does not support a kind, or nil.
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

// errNobody is returned by Begin when every possible victim is already affected.
var errNobody = errors.New("there is nobody left to hit")

func pick[T any](random *rand.Rand, from []T) (T, error) {
	if len(from) == 0 {
		var none T
		return none, errNobody
	}
	return from[random.IntN(len(from))], nil
}

// healthy draws a process of a role that runs and is not suspended.
func healthy(w *world.World, random *rand.Rand, role world.Role) (*world.Process, error) {
	return pick(random, slices.DeleteFunc(w.Processes(role), func(p *world.Process) bool { return p.PID() == 0 || p.Paused() }))
}

// nothing heals a fault that is already over.
func nothing(context.Context) error { return nil }
