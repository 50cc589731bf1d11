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
	attention = time.Minute      // for how long after somebody has looked samples come often
	seldom    = 15 * time.Second // how often they come otherwise
	patience  = 5 * time.Second  // with a database that does not answer
)

// Config says what is watched.
type Config struct {
	Gauges admin.Gauges
	// Relays returns those of this process that serve the database. Nil if there are none.
	Relays func() []source.Relay
	Meter  *Meter
	Hub    *Hub
	// Every is the time between two looks as long as anybody is interested.
	Every time.Duration
	// Report makes of a look what watchers get as the event "overview" whenever it has changed. It is not compared by the
	// time of the look. Nil if there is no such event.
	Report func(ctx context.Context, l *Look) (unchanging, whole any)
	Logger *slog.Logger
}

// Look is what was seen at one moment.
type Look struct {
	At       time.Time       // by this machine's clock
	Standing *admin.Standing // the last that is known; nil if there is none
	Err      error           // why it is not that of this moment
	Relays   []source.Relay  // of this process
	Rates    map[string]Value
}

// Watch samples one database. It is safe for concurrent use.
type Watch struct {
	cfg     Config
	history *history
	turn    chan struct{} // held by whoever looks
	woken   chan struct{}

	mu       sync.Mutex
	last     *Look
	stale    bool      // somebody has changed something since
	asked    time.Time // when anybody was last interested
	counts   *counts   // of the last look that was answered
	sampled  int64     // the second of the last sample
	report   Event
	reported string
	watchers map[*Watcher]struct{}
	closed   bool
}

// NewWatch returns a watch. Nothing is looked at before Run or Latest.
func NewWatch(cfg Config) *Watch {
	return &Watch{
		cfg: cfg, history: newHistory(cfg.Every), turn: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		watchers: make(map[*Watcher]struct{}),
	}
}

// Run samples until ctx ends, and then lets all watchers go.
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

// interest makes samples come often for a while after somebody has asked. The caller holds w.mu.
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

// Stale makes the next Latest look again: somebody has changed something.
func (w *Watch) Stale() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = true
}

// Latest returns the last look, or looks if that is old.
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
	if l := w.fresh(false); l != nil { // another's, meanwhile
		return l, nil
	}
	return w.look(ctx), ctx.Err()
}

// Beside returns the last look of another watch, however old, without waiting for it; nil if there was none. Whoever is interested in this watch
// is interested in that one, as long ago: two of them must not keep each other busy.
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

// look asks the database, and tells everybody. The caller has the turn.
func (w *Watch) look(ctx context.Context) *Look {
	w.mu.Lock()
	before := w.last
	w.stale = false
	w.mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	standing, err := w.cfg.Gauges.Gauges(asking)
	l := &Look{At: time.Now()}
	if w.cfg.Relays != nil {
		l.Relays = w.cfg.Relays()
	}
	if ctx.Err() != nil { // nobody waits for it: it says nothing about the database
		l.Err = ctx.Err()
		return l
	}
	l.Standing, l.Err = standing, err
	if err != nil && before != nil {
		l.Standing = before.Standing
	}
	if err != nil && (before == nil || before.Err == nil) && w.cfg.Logger != nil {
		w.cfg.Logger.WarnContext(ctx, "console: the database could not be asked", "err", err)
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

// keep makes a sample of a look. There is at most one a second.
func (w *Watch) keep(l *Look) (Sample, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := blank(l.At.Unix())
	if l.Err == nil {
		now := count(l.Standing, l.Relays)
		if w.last != nil && w.last.Rates != nil && w.counts != nil && now.at.Sub(w.counts.at) < time.Second {
			l.Rates = w.last.Rates // too soon for a difference to say much
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
		latency := w.cfg.Meter.Between(max(w.sampled-1, s.T-61), s.T-1) // this second is not over
		s.P50, s.P95, s.P99 = latency.P50, latency.P95, latency.P99
	}
	if s.T <= w.sampled {
		return s, false
	}
	w.sampled = s.T
	w.history.add(s)
	return s, true
}

// backlog returns how much all feeds have to deliver, and for how many seconds the oldest has waited.
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

// Series returns the last minutes.
func (w *Watch) Series(minutes int) *Series {
	w.mu.Lock()
	w.interest(time.Now())
	w.mu.Unlock()
	return w.history.series(minutes, time.Now())
}
