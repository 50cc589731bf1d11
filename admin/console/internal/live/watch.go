package live

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/source"
)

const (
	attention    = time.Minute      // how long after a request samples are frequent
	seldom       = 15 * time.Second // interval of samples otherwise
	queryTimeout = 5 * time.Second
)

// Config configures a [Watch].
type Config struct {
	Gauges admin.Gauges
	// Relays returns the relays of this process that serve the database. Nil if there are none.
	Relays func() []source.Relay
	Meter  *Meter
	Hub    *Hub
	// Every is the interval of samples while there are requests or watchers.
	Every time.Duration
	// Report converts a look to the event "overview", which watchers receive when unchanging
	// differs from the previous one. Nil for no such event.
	Report func(ctx context.Context, l *Look) (unchanging, whole any)
	Logger *slog.Logger
}

// Look is the state of a database at one time.
type Look struct {
	At       time.Time       // by this machine's clock
	Standing *admin.Standing // the latest known; nil if there is none
	Err      error           // why Standing is older than At, or missing
	Relays   []source.Relay  // of this process
	Rates    map[string]Value
}

// Watch samples one database. It is safe for concurrent use.
type Watch struct {
	cfg     Config
	history *history
	turn    chan struct{} // held during a query
	woken   chan struct{}

	mu       sync.Mutex
	last     *Look
	stale    bool      // something has changed since last
	asked    time.Time // time of the last request
	counts   *counts   // of the last successful query
	sampled  int64     // the second of the last sample
	report   Event
	reported string
	watchers map[*Watcher]struct{}
	closed   bool
}

// NewWatch returns a watch. It does not query before Run or Latest.
func NewWatch(cfg Config) *Watch {
	return &Watch{
		cfg: cfg, history: newHistory(cfg.Every), turn: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		watchers: make(map[*Watcher]struct{}),
	}
}

// Run samples until ctx ends, and then drops all watchers.
func (w *Watch) Run(ctx context.Context) {
	defer w.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.woken:
		}
		select {
		case w.turn <- struct{}{}:
			w.look(ctx)
			<-w.turn
		case <-ctx.Done():
			return
		}
		timer.Reset(w.pause())
	}
}

func (w *Watch) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.watchers) > 0 || time.Since(w.asked) < attention {
		return w.cfg.Every
	}
	return seldom
}

// interest makes samples frequent for a while after a request. The caller holds w.mu.
func (w *Watch) interest(asked time.Time) {
	idle := len(w.watchers) == 0 && time.Since(w.asked) >= attention
	w.asked = asked
	if idle {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

// Stale makes the next Latest query again, after a change.
func (w *Watch) Stale() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = true
}

// Latest returns the last look, or queries if it is old.
func (w *Watch) Latest(ctx context.Context) (*Look, error) {
	if l := w.fresh(true); l != nil {
		return l, nil
	}
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-w.turn }()
	if l := w.fresh(false); l != nil { // from a concurrent query
		return l, nil
	}
	return w.look(ctx), ctx.Err()
}

// Beside returns the last look of another watch without a query, or nil if there is none. It passes
// the time of the last request on to the other watch instead of counting as a request itself:
// otherwise two watches would keep each other busy.
func (w *Watch) Beside(other *Watch) *Look {
	w.mu.Lock()
	asked := w.asked
	if len(w.watchers) > 0 {
		asked = time.Now()
	}
	w.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	if asked.After(other.asked) {
		other.interest(asked)
	}
	return other.last
}

func (w *Watch) fresh(asked bool) *Look {
	w.mu.Lock()
	defer w.mu.Unlock()
	if asked {
		w.interest(time.Now())
	}
	if w.last == nil || w.stale || time.Since(w.last.At) > w.cfg.Every+w.cfg.Every/2 {
		return nil
	}
	return w.last
}

// look queries the database, and sends the result to all watchers. The caller holds the turn.
func (w *Watch) look(ctx context.Context) *Look {
	w.mu.Lock()
	before := w.last
	w.stale = false
	w.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	standing, err := w.cfg.Gauges.Gauges(asking)
	l := &Look{At: time.Now()}
	if w.cfg.Relays != nil {
		l.Relays = w.cfg.Relays()
	}
	if ctx.Err() != nil { // canceled: this says nothing about the database
		l.Err = ctx.Err()
		return l
	}
	l.Standing, l.Err = standing, err
	if err != nil && before != nil {
		l.Standing = before.Standing
	}
	if err != nil && (before == nil || before.Err == nil) && w.cfg.Logger != nil {
		w.cfg.Logger.WarnContext(ctx, "console: cannot query the database", "err", err)
	}
	sample, isNew := w.keep(l)
	if isNew {
		w.tell(eventOf(sample), "")
	}
	if w.cfg.Report != nil {
		unchanging, whole := w.cfg.Report(ctx, l)
		key, err := json.Marshal(unchanging)
		data, err2 := json.Marshal(whole)
		if err == nil && err2 == nil {
			w.tell(Event{Name: "overview", Data: data}, string(key))
		}
	}
	return l
}

// keep stores the look, and makes a sample of it. There is at most one sample per second.
func (w *Watch) keep(l *Look) (Sample, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := blank(l.At.Unix())
	if l.Err == nil {
		now := count(l.Standing, l.Relays)
		if w.last != nil && w.last.Rates != nil && w.counts != nil && now.at.Sub(w.counts.at) < time.Second {
			l.Rates = w.last.Rates // too soon for a meaningful difference
			w.last = l
			return s, false
		}
		r := now.since(w.counts)
		w.counts, l.Rates = &now, r.feeds
		s.Enqueued, s.Published, s.Failed = r.enqueued, r.published, r.failed
		s.Pending, s.Oldest = backlog(l.Standing)
	}
	w.last = l
	if w.cfg.Meter != nil {
		latency := w.cfg.Meter.Between(max(w.sampled-1, s.T-61), s.T-1) // the current second is incomplete
		s.P50, s.P95, s.P99 = latency.P50, latency.P95, latency.P99
	}
	if s.T <= w.sampled {
		return s, false
	}
	w.sampled = s.T
	w.history.add(s)
	return s, true
}

// backlog returns the number of pending messages of all feeds, and the age of the oldest in
// seconds.
func backlog(s *admin.Standing) (pending, oldest Value) {
	pending, oldest = 0, 0
	for i := range s.Feeds {
		f := &s.Feeds[i]
		pending += Value(f.Pending.N)
		if !f.Oldest.IsZero() {
			oldest = max(oldest, Value(s.At.Sub(f.Oldest).Seconds()))
		}
	}
	return pending, oldest
}

// Series returns the samples of the last minutes.
func (w *Watch) Series(minutes int) *Series {
	w.mu.Lock()
	w.interest(time.Now())
	w.mu.Unlock()
	return w.history.series(minutes, time.Now())
}
