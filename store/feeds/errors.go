package feeds

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrReset means that batches read from a [Feed] are no longer valid, for instance because the database crashed and
	// recovered. Discard all batches; the next Balance starts from what was settled.
	ErrReset = errors.New("postrider: feed was reset")

	// ErrSchema means that the store's tables are missing or have a version that this program cannot use.
	ErrSchema = errors.New("postrider: store schema is missing or has the wrong version")

	// ErrForeign means that the ledger was written in another database, of which this one is a restored dump or a clone.
	// Sending from it could repeat what the original sent, so relays wait for an operator.
	ErrForeign = errors.New("postrider: the ledger belongs to another database")

	// ErrNoFeed matches every [*NoFeedError]: there is no feed of that name.
	ErrNoFeed = errors.New("postrider: no such feed")

	// ErrDestination matches every [*DestinationError]: the feed sends to another destination.
	ErrDestination = errors.New("postrider: the feed has another destination")
)

// NoFeedError names a feed that does not exist, and the feeds that do. It matches [ErrNoFeed].
type NoFeedError struct {
	Feed  string
	Feeds []string // sorted by name; empty if they were not looked up
}

func (e *NoFeedError) Error() string {
	const most = 10
	names := make([]string, 0, most+1)
	for i, name := range e.Feeds {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(e.Feeds)-most))
			break
		}
		names = append(names, strconv.Quote(name))
	}
	if len(names) == 0 {
		return fmt.Sprintf("there is no feed %q", e.Feed)
	}
	return fmt.Sprintf("there is no feed %q: there are %s", e.Feed, strings.Join(names, ", "))
}

// Is makes errors.Is(err, ErrNoFeed) true.
func (e *NoFeedError) Is(target error) bool { return target == ErrNoFeed }

// DestinationError names the destination of a feed and the different one of a member. It matches
// [ErrDestination].
type DestinationError struct{ Feed, Has, Wants string }

func (e *DestinationError) Error() string {
	return fmt.Sprintf("feed %q sends to %q, and this relay would send to %q", e.Feed, e.Has, e.Wants)
}

// Is makes errors.Is(err, ErrDestination) true.
func (e *DestinationError) Is(target error) bool { return target == ErrDestination }
