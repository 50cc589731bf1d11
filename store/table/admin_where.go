package table

import (
	"context"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// adminWhere are conditions that all have to hold.
type adminWhere []func(*sqltext.Stmt)

func (w *adminWhere) add(condition func(*sqltext.Stmt)) { *w = append(*w, condition) }

// where adds the conditions.
func where(conditions ...func(*sqltext.Stmt)) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		for i, add := range conditions {
			if i == 0 {
				s.SQL(" WHERE ")
			} else {
				s.SQL(" AND ")
			}
			add(s)
		}
		return s
	}
}

// deferredWhere is what of a filter the database can look for in what is deferred; [admin.Filter.Matches] looks at the rest. Nothing is
// possible where the ID is nobody's.
func (d *Admin) deferredWhere(ctx context.Context, q sqltext.Querier, f *served, filter *admin.Filter) (w adminWhere, possible bool, err error) {
	w.add(func(s *sqltext.Stmt) { s.SQL("a.feed = ").Word(f.name) })
	if !filter.ID.IsZero() {
		ids, complete, err := f.t.find(ctx, q, filter.ID)
		if err != nil || complete && len(ids) == 0 {
			return w, false, err
		}
		if complete {
			w.add(func(s *sqltext.Stmt) { s.Words("a.row_id", ids) })
		}
	}
	if len(filter.Statuses) > 0 {
		w.add(func(s *sqltext.Stmt) {
			s.SQL("a.status IN (")
			for i, status := range filter.Statuses {
				if i > 0 {
					s.SQL(", ")
				}
				s.Text(string(status))
			}
			s.SQL(")")
		})
	}
	if filter.Key != "" {
		w.add(func(s *sqltext.Stmt) { s.SQL("a.blocking IN (0, 1) AND a.order_key = ").Word(filter.Key) }) // as the index has it
	}
	if !filter.Since.IsZero() {
		w.add(func(s *sqltext.Stmt) { s.SQL("a.enqueued_at >= ").At(roundUp(filter.Since)) })
	}
	if !filter.Until.IsZero() {
		w.add(func(s *sqltext.Stmt) { s.SQL("a.enqueued_at < ").At(roundUp(filter.Until)) })
	}
	if filter.Head {
		w.add(func(s *sqltext.Stmt) {
			s.SQL(`a.blocking = 1 AND NOT EXISTS (SELECT 1 FROM {deferred} e WHERE e.feed = a.feed AND e.order_key = a.order_key
				AND e.blocking = 1 AND e.seq < a.seq)`)
		})
	}
	return w, true, nil
}

// contentWhere is what of a filter the database can look for in the messages themselves. Texts that it takes for equal need not be.
func (f *served) contentWhere(filter *admin.Filter) (w adminWhere) {
	c := &f.t.layout.Columns
	for _, x := range []struct{ column, value string }{{c.Type, filter.Type}, {c.Topic, filter.Topic}, {c.TenantID, filter.Tenant}} {
		if x.column != "" && x.value != "" {
			w.add(func(s *sqltext.Stmt) { s.SQL(f.t.asText(x.column), " = ").Text(x.value) })
		}
	}
	return w
}

// roundUp is the first time not before another that a database can hold.
func roundUp(t time.Time) time.Time { return t.Add(time.Microsecond - 1).Truncate(time.Microsecond) }
