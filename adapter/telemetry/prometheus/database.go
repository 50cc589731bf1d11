package prometheus

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/admin"
)

// database is a store that is queried for its state.
type database struct {
	name     string
	from     admin.Gauges
	added    time.Time
	gone     context.Context // ends when the database is removed
	watched  atomic.Bool     // a Run queries it
	standing figure[shown]
	health   figure[admin.Health]
}

// AddDatabase exports the state of a store's feeds and the health of its database, while
// [Metrics.Run] runs and until remove is called. If from implements [admin.Problems], it also
// exports problems of destinations. A database of the same name is replaced.
func (m *Metrics) AddDatabase(name string, from admin.Gauges) (remove func()) {
	gone, end := context.WithCancel(context.Background())
	db := &database{name: label(name), from: from, added: time.Now(), gone: gone}
	remove = func() {
		end()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.databases[db.name].database == db {
			delete(m.databases, db.name)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.databases[db.name]; ok {
		old.end()
	}
	m.databases[db.name] = entry{db, end}
	close(m.changed)
	m.changed = make(chan struct{})
	return remove
}

type entry struct {
	*database
	end context.CancelFunc
}

// entries returns the databases, and a channel that is closed when one is added.
func (m *Metrics) entries() ([]entry, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.databases)), m.changed
}

// Run queries all databases, including those added later, every Config.Interval and
// Config.HealthInterval. It returns nil when ctx has ended.
func (m *Metrics) Run(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		all, changed := m.entries()
		for _, e := range all {
			if e.watched.CompareAndSwap(false, true) {
				asking.Go(func() { m.watch(ctx, e.database) })
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// watch queries one database. Each has its own goroutines, so that one that hangs delays no other.
func (m *Metrics) watch(ctx context.Context, db *database) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(db.gone, cancel)() //nolint:contextcheck // it is the end of the database
	defer db.watched.Store(false)

	log := m.cfg.Logger.With("database", db.name)
	var both sync.WaitGroup
	both.Go(func() {
		tenants := make(map[string]bool)
		every(ctx, m.cfg.Interval, func() {
			db.standing.ask(ctx, m.cfg.Timeout, log.With("question", "standing"), func(ctx context.Context) (*shown, error) {
				s, err := db.from.Gauges(ctx)
				if err != nil {
					return nil, err
				}
				problems, err := problemsOf(ctx, db.from, s)
				if err != nil {
					return nil, err
				}
				tenants = chooseTenants(tenants, s)
				return &shown{s, tenants, problems}, nil
			})
		})
	})
	both.Go(func() {
		every(ctx, m.cfg.HealthInterval, func() {
			db.health.ask(ctx, m.cfg.Timeout, log.With("question", "health"), db.from.Health)
		})
	})
	both.Wait()
}

func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// figure is the last answer to a query.
type figure[T any] struct {
	mu      sync.Mutex
	what    *T // nil before the first answer
	asked   time.Time
	failing bool
}

func (f *figure[T]) ask(ctx context.Context, timeout time.Duration, log *slog.Logger, question func(context.Context) (*T, error)) {
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	what, err := question(bounded)
	if ctx.Err() != nil {
		return // the failure, if any, is due to the end
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.failing
	f.failing = err != nil
	switch {
	case err == nil:
		f.what, f.asked = what, start
		if was {
			log.Info("prometheus: the database answers again")
		}
	case !was:
		log.Warn("prometheus: the database does not answer; its metrics will disappear soon", "err", err)
	}
}

// last returns the last answer (nil before the first), its age, and whether the last query failed.
func (f *figure[T]) last() (what *T, age time.Duration, failing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.what, time.Since(f.asked), f.failing
}
