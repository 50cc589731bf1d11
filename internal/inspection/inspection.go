// Package inspection asks a destination what its confirmations are worth, and logs the answer: once
// at the start, and again for each name that is discovered when messages go to it.
package inspection

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/sleep"
)

const (
	// Timeout is the maximum wait for an answer.
	Timeout = 10 * time.Second
	// Pause is the time before the first retry if the destination does not answer. It doubles with
	// each further one.
	Pause    = time.Second
	longest  = time.Minute
	gather   = time.Second // new names come in groups
	maxNames = 100         // limits requests if there is a name for each customer
)

// Watch inspects one destination. Methods of a nil Watch do nothing. It is safe for concurrent use.
type Watch struct {
	inspector broker.Inspector
	log       *slog.Logger

	mu    sync.RWMutex
	known map[string]bool
	fresh []string // not inspected yet
	more  chan struct{}

	said map[broker.Warning]bool // used by Run only
}

// New returns a Watch of pub, or nil if pub is no [broker.Inspector]. names are the names known so
// far.
func New(pub postrider.Publisher, log *slog.Logger, names []string) *Watch {
	inspector, ok := pub.(broker.Inspector)
	if !ok {
		return nil
	}
	w := &Watch{
		inspector: inspector, log: log, known: make(map[string]bool), more: make(chan struct{}, 1), said: make(map[broker.Warning]bool),
	}
	for _, name := range names {
		w.Sent(name)
	}
	return w
}

// Sent adds a name that messages go to. It is cheap for a known name.
func (w *Watch) Sent(name string) {
	if w == nil || name == "" {
		return
	}
	w.mu.RLock()
	known := w.known[name] || len(w.known) >= maxNames
	w.mu.RUnlock()
	if known {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[name] || len(w.known) >= maxNames {
		return
	}
	w.known[name] = true
	w.fresh = append(w.fresh, name)
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// Called is like Sent for the name of a call's first message, unless its error, the first of errs,
// shows that no message can have that name.
func (w *Watch) Called(name string, errs []error) {
	if len(errs) == 0 || postrider.ClassOf(errs[0]) != postrider.ClassPermanent {
		w.Sent(name)
	}
}

// Run asks and logs until ctx ends. It calls answered with nil for each answer and with the error
// of each failed request.
func (w *Watch) Run(ctx context.Context, answered func(error)) {
	if w == nil {
		return
	}
	for first := true; ; first = false {
		found, ok := w.ask(ctx, answered)
		if !ok {
			return
		}
		w.report(found, first)
		select {
		case <-w.more:
		case <-ctx.Done():
			return
		}
		if !sleep.For(ctx, gather) {
			return
		}
	}
}

// ask asks about the new names, and retries until the destination answers.
func (w *Watch) ask(ctx context.Context, answered func(error)) (broker.Inspection, bool) {
	w.mu.Lock()
	names := w.fresh
	w.fresh = nil
	select {
	case <-w.more:
	default:
	}
	w.mu.Unlock()
	for pause := Pause; ; pause = min(2*pause, longest) {
		call, cancel := context.WithTimeout(ctx, Timeout)
		found, err := w.inspector.Inspect(call, names)
		cancel()
		answered(err)
		if err == nil {
			return found, true
		}
		w.log.Debug("relay: the destination does not say what confirmed means; asking again", "in", pause, "err", err)
		if !sleep.For(ctx, pause) {
			return found, false
		}
	}
}

// report logs what was not logged before.
func (w *Watch) report(found broker.Inspection, first bool) {
	var settings []string
	for _, s := range found.Settings { // several names may have the same setting
		if text := s.Name + "=" + s.Value; !slices.Contains(settings, text) {
			settings = append(settings, text)
		}
	}
	if first {
		w.log.Info("relay: confirmed means", "meaning", found.Confirmed, "settings", strings.Join(settings, ", "))
	}
	for _, warning := range found.Warnings {
		if !w.said[warning] {
			w.said[warning] = true
			w.log.Warn("relay: the destination needs attention", "danger", warning.Danger, "remedy", warning.Remedy)
		}
	}
}
