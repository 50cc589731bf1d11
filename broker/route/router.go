package route

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

var (
	_ postrider.Publisher = (*Router)(nil)
	_ broker.OrderKeeper  = (*Router)(nil)
	_ broker.Inspector    = (*Router)(nil)
	_ broker.Namer        = (*Router)(nil)
)

// Config tunes a [Router]. The zero value works.
type Config struct {
	// Only is the filter: messages that it does not match are passed over as done and never sent. Defaults to all. It fits the log, of
	// which every feed has its own place; a table whose rows say what has become of them is filtered by its store.
	Only Match
	// Logger is told of messages that no rule matches. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Router is a [postrider.Publisher] that sends each message to the destination that a [Table] names. It is safe for
// concurrent use.
type Router struct {
	ways       atomic.Pointer[ways]
	only       *filter // nil lets all pass
	keepsOrder bool
	unmatched  unmatched

	passed, dropped atomic.Int64
	mu              sync.Mutex // for what follows
	owned           map[string]postrider.Publisher
	closing         sync.Once
	closed          error
}

// NewRouter returns a router. Its Close closes all destinations, also those that no rule names; whoever shares them
// between routers closes them himself instead. Its error contains all mistakes.
func NewRouter(t *Table, destinations map[string]postrider.Publisher, cfg Config) (*Router, error) {
	r := &Router{unmatched: unmatched{log: cfg.Logger}, owned: make(map[string]postrider.Publisher)}
	if r.unmatched.log == nil {
		r.unmatched.log = slog.Default()
	}
	w, err := newWays(t, destinations)
	errs := []error{err}
	cfg.Only.check(func(field string, err error) { errs = append(errs, fmt.Errorf("route: only: %s: %w", field, err)) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if !cfg.Only.IsEmpty() {
		r.only = &filter{match: cfg.Only}
	}
	r.keepsOrder = w.keepOrder()
	r.use(w, destinations)
	return r, nil
}

// KeepsOrder is true when the first table has exactly one destination and that keeps order. With several, the relay keeps
// the order of a key by sending one message of it at a time.
func (r *Router) KeepsOrder() bool { return r.keepsOrder }

// NameOf returns the destination's name and, behind a slash, the name that the destination has for m, if any. It is empty
// for a message that is not sent: one without a route, or one that a rule drops or the filter passes over.
func (r *Router) NameOf(m *postrider.Message) string {
	w := r.ways.Load()
	if r.only != nil && !r.only.passes(m) {
		return ""
	}
	d, err := w.table.Resolve(m)
	if err != nil || d.Drop {
		return ""
	}
	to := &w.destinations[w.byRule[d.Rule]]
	namer, ok := to.pub.(broker.Namer)
	if !ok {
		return to.name
	}
	sent := *m
	sent.Topic, sent.WireID = d.Name, d.ID
	if name := namer.NameOf(&sent); name != "" {
		return to.name + "/" + name
	}
	return to.name
}

// Close closes all destinations. Calls after the first return what that returned.
func (r *Router) Close() error {
	r.closing.Do(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		var errs []error
		for _, pub := range r.owned {
			errs = append(errs, pub.Close())
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
