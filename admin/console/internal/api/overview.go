package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/live"
)

// Overview is the state of a database.
type Overview struct {
	At        time.Time  `json:"at"`
	Healthy   bool       `json:"healthy"`
	Problems  []Problem  `json:"problems" doc:"worst first"`
	Feeds     []Feed     `json:"feeds"`
	Consumers []Consumer `json:"consumers"`
	Totals    Totals     `json:"totals"`
	Elsewhere []Troubled `json:"elsewhere" doc:"other databases of the console that need attention"`
}

// Troubled is a database with problems.
type Troubled struct {
	Database string  `json:"database"`
	Problems int     `json:"problems"`
	Worst    Problem `json:"worst"`
}

// Totals are the sums over all feeds and consumers.
type Totals struct {
	Pending admin.Estimate `json:"pending"`
	Dead    admin.Estimate `json:"dead"`
	Blocked admin.Estimate `json:"blocked"`
	Oldest  time.Time      `json:"oldest,omitzero"`
}

func (s *Server) overview(ctx context.Context, d *database, _ *DB) (*Overview, error) {
	l, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	return s.overviewOf(ctx, d, l), nil
}

// look returns the latest sample of the database.
func (d *database) look(ctx context.Context) (*live.Look, error) {
	watch, err := has(d.watch, "gauges")
	if err != nil {
		return nil, err
	}
	return watch.Latest(ctx)
}

// standing is look for callers that need a current sample. It returns the error of a failed one.
func (d *database) standing(ctx context.Context) (*live.Look, error) {
	l, err := d.look(ctx)
	if err == nil {
		err = l.Err
	}
	return l, err
}

func (s *Server) overviewOf(ctx context.Context, d *database, l *live.Look) *Overview {
	o := s.seen(d, l)
	if l.Err == nil {
		slow, _ := d.slow.get(ctx, d.slowProblems) // without these on an error; the rest is still shown
		o.Problems = append(o.Problems, slow...)
	}
	worstFirst(o.Problems)
	o.Healthy = len(o.Problems) == 0
	for _, other := range s.databases {
		if other == d || other.watch == nil {
			continue
		}
		if l := d.watch.Beside(other.watch); l != nil {
			if all := s.seen(other, l).Problems; len(all) > 0 {
				worstFirst(all)
				o.Elsewhere = append(o.Elsewhere, Troubled{other.Name, len(all), all[0]})
			}
		}
	}
	return o
}

// seen returns the overview of a sample, without further queries.
func (s *Server) seen(d *database, l *live.Look) *Overview {
	o := &Overview{At: l.At.UTC(), Feeds: []Feed{}, Consumers: []Consumer{}, Elsewhere: []Troubled{}, Problems: d.problems(l)}
	o.Totals.Pending.Exact, o.Totals.Dead.Exact, o.Totals.Blocked.Exact = true, true, true
	if l.Standing != nil {
		for i := range l.Standing.Feeds {
			f := d.feedOf(l, &l.Standing.Feeds[i])
			o.Feeds = append(o.Feeds, f)
			o.Problems = append(o.Problems, f.Problems...)
			o.Totals.add(&f.Deferred)
			o.Totals.Pending.N += f.Pending.N
			o.Totals.Pending.Exact = o.Totals.Pending.Exact && f.Pending.Exact
			if !f.Oldest.IsZero() && (o.Totals.Oldest.IsZero() || f.Oldest.Before(o.Totals.Oldest)) {
				o.Totals.Oldest = f.Oldest
			}
		}
		for i := range l.Standing.Consumers {
			c := d.consumerOf(&l.Standing.Consumers[i], l.Standing.At)
			o.Consumers = append(o.Consumers, c)
			o.Problems = append(o.Problems, c.Problems...)
			o.Totals.add(&c.Deferred)
		}
	}
	return o
}

func (t *Totals) add(a *admin.DeferredCount) {
	t.Dead.N += int64(a.Dead)
	t.Blocked.N += int64(a.Blocked)
	t.Dead.Exact = t.Dead.Exact && a.Exact
	t.Blocked.Exact = t.Blocked.Exact && a.Exact
}
