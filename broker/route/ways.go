package route

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// ways is a table together with its destinations. A Publish uses the same one throughout.
type ways struct {
	table        *Table
	destinations []destination
	byRule       []int     // index of each rule's destination
	drops        bool      // some rule drops messages
	batches      sync.Pool // of *batch
	guarded      bool      // the router promised an order that the destinations together do not keep
}

type destination struct {
	name string
	pub  postrider.Publisher
}

func newWays(t *Table, destinations map[string]postrider.Publisher) (*ways, error) {
	if t == nil {
		return nil, errors.New("route: table is nil")
	}
	w := &ways{table: t, byRule: make([]int, len(t.rules))}
	var errs []error
	known := slices.Sorted(maps.Keys(destinations))
	for _, name := range known {
		if destinations[name] == nil {
			errs = append(errs, fmt.Errorf("route: destination %q is nil", name))
		}
	}
	for i := range t.rules {
		if t.rules[i].Drop {
			w.drops = true
			continue
		}
		name := t.rules[i].Destination
		pub, ok := destinations[name]
		if !ok {
			errs = append(errs, &RuleError{i, "destination", fmt.Errorf("there is no destination %q: there are %q", name, known)})
			continue
		}
		w.byRule[i] = slices.IndexFunc(w.destinations, func(d destination) bool { return d.name == name })
		if w.byRule[i] < 0 {
			w.byRule[i] = len(w.destinations)
			w.destinations = append(w.destinations, destination{name, pub})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	w.batches.New = func() any { return &batch{groups: make([]group, len(w.destinations))} }
	return w, nil
}

func (w *ways) keepOrder() bool {
	return len(w.destinations) == 1 && w.destinations[0].keepsOrder()
}

func (d *destination) keepsOrder() bool {
	keeper, ok := d.pub.(broker.OrderKeeper)
	return ok && keeper.KeepsOrder()
}

// publish sends msgs to a destination and returns an error for each, or nil. If there are several
// destinations, an outage of one must not stop the others, so that it is reported as an outage of
// the message's name only. Errors of messages that were not tried or were cancelled are left as
// they are: they say nothing about the destination.
func (w *ways) publish(ctx context.Context, at int, msgs []postrider.Message) []error {
	errs := w.destinations[at].publish(ctx, msgs)
	if len(w.destinations) == 1 || errs == nil {
		return errs
	}
	errs = slices.Clone(errs)
	for i, err := range errs {
		away := postrider.ScopeOf(err) == postrider.ScopeDestination
		if away && !errors.Is(err, postrider.ErrNotTried) && !errors.Is(ctx.Err(), context.Canceled) {
			errs[i] = postrider.NameUnavailable(err)
		}
	}
	return errs
}

// publish sends msgs and returns an error for each, or nil.
func (d *destination) publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := d.pub.Publish(ctx, msgs)
	if errs == nil || len(errs) == len(msgs) {
		return errs
	}
	// A publisher that returns a wrong number of results must not make messages look confirmed.
	err := fmt.Errorf("route: destination %q returned %d results for %d messages", d.name, len(errs), len(msgs))
	errs = make([]error, len(msgs))
	for i := range errs {
		errs[i] = err
	}
	return errs
}
