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
	_ broker.Filter       = (*Router)(nil)
	_ broker.Recaller     = (*Router)(nil)
)

// Config tunes a [Router]. The zero value works.
type Config struct {
	// Only filters messages: those that it does not match are reported as done and never sent.
	// Defaults to all. Use it with the log, where every feed has its own position. A store with one
	// row per message filters its rows itself.
	Only Match
	// Logger receives messages that no rule matches. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Router is a [postrider.Publisher] that sends each message to the destination that a [Table]
// names. It is safe for concurrent use.
type Router struct {
	ways       atomic.Pointer[ways]
	only       *filter // nil lets every message pass
	keepsOrder bool
	unmatched  unmatched

	passed, dropped atomic.Int64
	mu              sync.Mutex // guards the fields below
	owned           map[string]postrider.Publisher
	closing         sync.Once
	closed          error
}

// NewRouter returns a router. Its Close closes all destinations, including those that no rule
// names. If routers share destinations, do not call Close; close the destinations yourself. The
// error contains all mistakes.
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

// KeepsOrder reports whether the first table has exactly one destination and that one keeps order.
// With several destinations the relay keeps order by sending one message per key at a time.
func (r *Router) KeepsOrder() bool { return r.keepsOrder }

// NameOf returns the destination's name and, after a slash, the name of m at the destination, if
// any. It returns "" for a message that is not sent: one without a route, or one that a rule drops
// or the filter excludes.
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

// Sends reports whether neither the filter excludes m nor a rule drops it.
func (r *Router) Sends(m *postrider.Message) bool {
	if r.filtersOut(m) {
		return false
	}
	w := r.ways.Load()
	if !w.drops {
		return true
	}
	d, err := w.table.Resolve(m)
	if err == nil && d.Drop {
		r.dropped.Add(1)
		return false
	}
	return true
}

// Close closes all destinations. Later calls return the result of the first.
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

// Passed returns how many messages the filter has excluded.
func (r *Router) Passed() int64 { return r.passed.Load() }

// Dropped returns how many messages rules have dropped.
func (r *Router) Dropped() int64 { return r.dropped.Load() }

// Unmatched returns, by type, how often a message was refused because no rule matched it. Each
// retry counts. Types beyond the first thousand are counted together as "(others)".
func (r *Router) Unmatched() map[string]int64 { return r.unmatched.counts() }

// filter is a Match that caches its results.
type filter struct {
	match Match
	known memo[bool]
}

func (f *filter) passes(m *postrider.Message) bool {
	return f.known.get(f.match.dimensions().of(m), f.match.matches)
}
