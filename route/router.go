package route

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/postrider/postrider"
)

var (
	_ postrider.Publisher   = (*Router)(nil)
	_ postrider.OrderKeeper = (*Router)(nil)
	_ postrider.Inspector   = (*Router)(nil)
)

// Config tunes a [Router]. The zero value works.
type Config struct {
	// Only is the filter: messages that it does not match are passed over as done and never sent. Defaults to all.
	Only Match
	// Logger is told of messages that no rule matches. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Router is a [postrider.Publisher] that sends each message to the destination that a [Table] names. It is safe for
// concurrent use.
type Router struct {
	table        *Table
	only         *filter // nil lets all pass
	destinations []destination
	byRule       []int // index of each rule's destination
	keepsOrder   bool
	unmatched    unmatched

	passed, dropped atomic.Int64
	batches         sync.Pool // of *batch
	closing         sync.Once
	closed          error
	owned           []postrider.Publisher
}

type destination struct {
	name string
	pub  postrider.Publisher
}

// NewRouter returns a router. Its Close closes all destinations, also those that no rule names; whoever shares them
// between routers closes them himself instead. Its error contains all mistakes.
func NewRouter(t *Table, destinations map[string]postrider.Publisher, cfg Config) (*Router, error) {
	if t == nil {
		return nil, errors.New("route: table is nil")
	}
	r := &Router{table: t, byRule: make([]int, len(t.rules)), unmatched: unmatched{log: cfg.Logger}}
	if r.unmatched.log == nil {
		r.unmatched.log = slog.Default()
	}
	var errs []error
	var known []string
	for name, pub := range destinations {
		known = append(known, name)
		r.owned = append(r.owned, pub)
		if pub == nil {
			errs = append(errs, fmt.Errorf("route: destination %q is nil", name))
		}
	}
	slices.Sort(known)
	for i := range t.rules {
		if t.rules[i].Drop {
			continue
		}
		name := t.rules[i].Destination
		pub, ok := destinations[name]
		if !ok {
			errs = append(errs, &RuleError{i, "destination", fmt.Errorf("there is no destination %q: there are %q", name, known)})
			continue
		}
		r.byRule[i] = slices.IndexFunc(r.destinations, func(d destination) bool { return d.name == name })
		if r.byRule[i] < 0 {
			r.byRule[i] = len(r.destinations)
			r.destinations = append(r.destinations, destination{name, pub})
		}
	}
	cfg.Only.check(func(field string, err error) { errs = append(errs, fmt.Errorf("route: only: %s: %w", field, err)) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if !cfg.Only.isEmpty() {
		r.only = &filter{match: cfg.Only}
	}
	if len(r.destinations) == 1 {
		keeper, ok := r.destinations[0].pub.(postrider.OrderKeeper)
		r.keepsOrder = ok && keeper.KeepsOrder()
	}
	r.batches.New = func() any { return &batch{groups: make([]group, len(r.destinations))} }
	return r, nil
}

// KeepsOrder is true when there is exactly one destination and that keeps order. With several, the relay keeps the order
// of a key by sending one message of it at a time.
func (r *Router) KeepsOrder() bool { return r.keepsOrder }

// Close closes all destinations. Calls after the first return what that returned.
func (r *Router) Close() error {
	r.closing.Do(func() {
		errs := make([]error, len(r.owned))
		for i, pub := range r.owned {
			errs[i] = pub.Close()
		}
		r.closed = errors.Join(errs...)
	})
	return r.closed
}

// Passed returns how many messages the filter has passed over.
func (r *Router) Passed() int64 { return r.passed.Load() }

// Dropped returns how many messages were dropped by rules.
func (r *Router) Dropped() int64 { return r.dropped.Load() }

// Unmatched returns, by type, how often a message was refused because no rule matches it. One that is tried again counts
// again. Types beyond the first thousand are counted together as "(others)".
func (r *Router) Unmatched() map[string]int64 { return r.unmatched.counts() }

// filter is a Match that remembers its answers.
type filter struct {
	match Match
	known memo[bool]
}

func (f *filter) passes(m *postrider.Message) bool {
	return f.known.get(f.match.dimensions().of(m), f.match.matches)
}

// publishTo sends msgs to a destination and returns an error for each, or nil.
func (d *destination) publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := d.pub.Publish(ctx, msgs)
	if errs == nil || len(errs) == len(msgs) {
		return errs
	}
	// A publisher that breaks its promise must not make messages look confirmed.
	err := fmt.Errorf("route: destination %q returned %d results for %d messages", d.name, len(errs), len(msgs))
	errs = make([]error, len(msgs))
	for i := range errs {
		errs[i] = err
	}
	return errs
}
