package classic

import (
	"context"
	"time"

	"github.com/postrider/postrider/admin"
)

// adminWhere are conditions that all have to hold.
type adminWhere []func(*stmt)

func (w *adminWhere) add(condition func(*stmt)) { *w = append(*w, condition) }

// where adds the conditions.
func (s *stmt) where(conditions ...func(*stmt)) *stmt {
	for i, add := range conditions {
		if i == 0 {
			s.sql(" WHERE ")
		} else {
			s.sql(" AND ")
		}
		add(s)
	}
	return s
}

// asideWhere is what of a filter the database can look for in what is deferred; [admin.Filter.Matches] looks at the rest. Nothing is
// possible where the ID is nobody's.
func (d *Admin) asideWhere(ctx context.Context, q querier, f *served, filter *admin.Filter) (w adminWhere, possible bool, err error) {
	w.add(func(s *stmt) { s.sql("a.feed = ").word(f.name) })
	if !filter.ID.IsZero() {
		ids, complete, err := f.t.find(ctx, q, filter.ID)
		if err != nil || complete && len(ids) == 0 {
			return w, false, err
		}
		if complete {
			w.add(func(s *stmt) { s.words("a.row_id", ids) })
		}
	}
	if len(filter.Statuses) > 0 {
		w.add(func(s *stmt) {
			s.sql("a.status IN (")
			for i, status := range filter.Statuses {
				if i > 0 {
					s.sql(", ")
				}
				s.text(string(status))
			}
			s.sql(")")
		})
	}
	if filter.Key != "" {
		w.add(func(s *stmt) { s.sql("a.blocking IN (0, 1) AND a.order_key = ").word(filter.Key) }) // as the index has it
	}
	if !filter.Since.IsZero() {
		w.add(func(s *stmt) { s.sql("a.enqueued_at >= ").at(roundUp(filter.Since)) })
	}
	if !filter.Until.IsZero() {
		w.add(func(s *stmt) { s.sql("a.enqueued_at < ").at(roundUp(filter.Until)) })
	}
	if filter.Head {
		w.add(func(s *stmt) {
			s.sql(`a.blocking = 1 AND NOT EXISTS (SELECT 1 FROM {aside} e WHERE e.feed = a.feed AND e.order_key = a.order_key
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
			w.add(func(s *stmt) { s.sql(f.t.asText(x.column), " = ").text(x.value) })
		}
	}
	return w
}

// roundUp is the first time not before another that a database can hold.
func roundUp(t time.Time) time.Time { return t.Add(time.Microsecond - 1).Truncate(time.Microsecond) }
