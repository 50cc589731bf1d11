package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/console/live"
	"github.com/postrider/postrider/desk"
)

// Overview is how a database stands.
type Overview struct {
	At        time.Time  `json:"at"`
	Healthy   bool       `json:"healthy"`
	Problems  []Problem  `json:"problems" doc:"worst first"`
	Feeds     []Feed     `json:"feeds"`
	Consumers []Consumer `json:"consumers"`
	Totals    Totals     `json:"totals"`
}

// Totals are those of all feeds and consumers.
type Totals struct {
	Pending desk.Estimate `json:"pending"`
	Dead    desk.Estimate `json:"dead"`
	Blocked desk.Estimate `json:"blocked"`
	Oldest  time.Time     `json:"oldest,omitzero"`
}

func (s *Server) overview(ctx context.Context, d *database, _ *DB) (*Overview, error) {
	l, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	return s.overviewOf(ctx, d, l), nil
}

// look returns how the feeds stand.
func (d *database) look(ctx context.Context) (*live.Look, error) {
	watch, err := has(d.watch, "gauges")
	if err != nil {
		return nil, err
	}
	return watch.Latest(ctx)
}

// standing is look for those to whom an old answer is of no use.
func (d *database) standing(ctx context.Context) (*live.Look, error) {
	l, err := d.look(ctx)
	if err == nil {
		err = l.Err
	}
	return l, err
}

func (s *Server) overviewOf(ctx context.Context, d *database, l *live.Look) *Overview {
	o := &Overview{At: l.At.UTC(), Feeds: []Feed{}, Consumers: []Consumer{}}
	o.Problems = d.problems(ctx, l)
	o.Totals.Pending.Exact, o.Totals.Dead.Exact, o.Totals.Blocked.Exact = true, true, true
	if l.Standing != nil {
		for i := range l.Standing.Feeds {
			f := d.feedOf(l, &l.Standing.Feeds[i])
			o.Feeds = append(o.Feeds, f)
			o.Problems = append(o.Problems, f.Problems...)
			o.Totals.add(&f.Aside)
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
			o.Totals.add(&c.Aside)
		}
	}
	worstFirst(o.Problems)
	o.Healthy = len(o.Problems) == 0
	return o
}

func (t *Totals) add(a *desk.AsideCount) {
	t.Dead.N += int64(a.Dead)
	t.Blocked.N += int64(a.Blocked)
	t.Dead.Exact = t.Dead.Exact && a.Exact
	t.Blocked.Exact = t.Blocked.Exact && a.Exact
}
