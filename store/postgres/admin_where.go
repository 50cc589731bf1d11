package postgres

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// where builds the condition of a query and its arguments.
type where struct {
	conditions []string
	args       []any
	settled    string // the condition that all are dead or parked, or empty
}

func (w *where) arg(value any) string {
	w.args = append(w.args, value)
	return fmt.Sprintf("$%d", len(w.args))
}

// add appends a condition, with an argument in place of each %s.
func (w *where) add(condition string, values ...any) {
	places := make([]any, len(values))
	for i, v := range values {
		places[i] = w.arg(v)
	}
	w.conditions = append(w.conditions, fmt.Sprintf(condition, places...))
}

// errorHas returns a condition on the words of the last error. It does not add it.
func (w *where) errorHas(words string) string {
	condition := ""
	if w.settled != "" {
		condition = w.settled + " AND "
	}
	return condition + "d.last_error IS NOT NULL AND to_tsvector('simple', d.last_error) @@ plainto_tsquery('simple', " + w.arg(words) + ")"
}

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// deferredWhere returns a filter as a condition on table deferred, d.
func deferredWhere(f *admin.Filter) *where {
	var w where
	w.common(f, "d.order_key")
	// The indexes hold hashes of the texts.
	for _, by := range []struct{ column, value string }{
		{"d.type", f.Type}, {"d.topic", f.Topic}, {"d.order_key", f.Key}, {"d.tenant_id", f.Tenant},
	} {
		if by.value != "" {
			w.add("hashtextextended("+by.column+", 0) = hashtextextended(%s, 0)", by.value)
		}
	}
	if len(f.Statuses) > 0 {
		statuses := make([]string, len(f.Statuses))
		for i, s := range f.Statuses {
			statuses[i] = string(s)
		}
		w.add("d.status = ANY (%s)", statuses)
		if !slices.ContainsFunc(f.Statuses, func(s feeds.Status) bool { return s != feeds.StatusDead && s != feeds.StatusParked }) {
			w.settled = "d.status IN ('dead', 'parked')" // lets the planner use the partial indexes for these statuses
			w.conditions = append(w.conditions, w.settled)
		}
	}
	if f.Feed != "" {
		w.add("d.feed = %s", f.Feed)
	}
	if f.Error != "" {
		w.conditions = append(w.conditions, w.errorHas(f.Error))
	}
	if f.Head {
		w.add(`d.blocking AND NOT EXISTS (SELECT FROM @schema@.deferred e
			WHERE e.feed = d.feed AND e.shard = d.shard AND e.order_key = d.order_key AND e.blocking AND e.seq < d.seq
			  AND hashtextextended(e.order_key, 0) = hashtextextended(d.order_key, 0))`)
	}
	return &w
}

// logWhere returns a filter as a condition on the log, d. It leaves out canaries unless they are
// asked for.
func logWhere(f *admin.Filter) *where {
	var w where
	if f.Type != feeds.CanaryType && f.ID.IsZero() {
		w.add("d.type <> %s", feeds.CanaryType)
	}
	w.common(f, "coalesce(d.key, d.aggregate_type || '/' || d.aggregate_id)")
	return &w
}

func (w *where) common(f *admin.Filter, key string) {
	if !f.ID.IsZero() {
		w.add("d.id = %s", f.ID.String())
	}
	if f.Type != "" {
		w.add("d.type = %s", f.Type)
	}
	if f.Topic != "" {
		w.add("d.topic = %s", f.Topic)
	}
	if f.Key != "" {
		w.add(key+" = %s", f.Key)
	}
	if f.Tenant != "" {
		w.add("d.tenant_id = %s", f.Tenant)
	}
	if !f.Since.IsZero() {
		w.add("d.created_at >= %s", f.Since)
	}
	if !f.Until.IsZero() {
		w.add("d.created_at < %s", f.Until)
	}
}

// jsonText returns JSON as a jsonb column accepts it: without NUL characters.
func jsonText(text []byte) string { return string(bytes.ReplaceAll(text, []byte(`\u0000`), nil)) }
