package table

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// published is what is set in rows that were delivered; nothing where they are deleted instead.
func (t *table) published() string {
	s := &t.layout.State
	if s.Delete || s.Status == "" && s.PublishedAt == "" {
		return ""
	}
	var set []string
	if s.Status != "" {
		set = append(set, t.quote(s.Status)+" = "+t.cfg.Dialect.Literal(s.Published))
	}
	for _, column := range []string{s.PublishedAt, s.UpdatedAt} {
		if column != "" {
			set = append(set, t.quote(column)+" = "+t.now())
		}
	}
	return strings.Join(set, ", ")
}

// publish marks rows as delivered, or deletes them.
func (t *table) publish(ctx context.Context, tx sqltext.Querier, rowIDs []string) error {
	set := t.published()
	if set == "" {
		return t.remove(ctx, tx, rowIDs, nil)
	}
	for part := range slices.Chunk(rowIDs, settleChunk) {
		if _, err := t.cfg.stmt("UPDATE ", t.byID, " SET ", set, " WHERE ").Add(idIn(t, part)).Exec(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// condition is what the table's own columns tell of a row that is deferred.
type condition struct {
	status feeds.Status
	tried  bool // it has failed itself
}

// word is the table's own for a condition.
func (t *table) word(c condition) string {
	s := &t.layout.State
	failed := s.Failed
	if failed == "" {
		failed = s.Pending[0]
	}
	switch {
	case t.layout.native:
		return string(c.status)
	case c.status == feeds.StatusDead || c.status == feeds.StatusParked:
		if s.Dead != "" {
			return s.Dead
		}
		return failed
	case c.status == feeds.StatusRetry && c.tried:
		return failed
	}
	return s.Pending[0]
}

// mirror writes into rows of the table, in its own words, what stands about them in {deferred}: a reader of the table alone
// sees what has become of them.
func (t *table) mirror(ctx context.Context, tx sqltext.Querier, feed string, rowIDs []string) error {
	for part := range slices.Chunk(rowIDs, chunk) {
		groups, err := t.conditions(ctx, tx, feed, part)
		if err != nil {
			return err
		}
		for c, some := range groups {
			s := t.cfg.stmt("UPDATE ", t.byID, " SET ")
			if !t.tell(s, c, feed) {
				continue
			}
			if _, err := s.SQL(" WHERE ").Add(idIn(t, some)).Exec(ctx, tx); err != nil {
				return err
			}
		}
	}
	return nil
}

// conditions sorts rows by what stands about them.
func (t *table) conditions(ctx context.Context, tx sqltext.Querier, feed string, rowIDs []string) (map[condition][]string, error) {
	groups := make(map[condition][]string)
	s := t.cfg.stmt("SELECT row_id, status, CASE WHEN tried_at IS NULL THEN 0 ELSE 1 END FROM {deferred} WHERE feed = ").Word(feed)
	err := s.SQL(" AND ").Words("row_id", rowIDs).Each(ctx, tx, func(scan func(...any) error) error {
		var rowID string
		var c condition
		err := scan(&rowID, &c.status, &c.tried)
		groups[c] = append(groups[c], rowID)
		return err
	})
	return groups, err
}

// tell adds what is set in rows of a condition. It returns false where the table has no column for any of it.
func (t *table) tell(s *sqltext.Stmt, c condition, feed string) bool {
	state, told := &t.layout.State, false
	set := func(column, expression string) {
		if column == "" {
			return
		}
		if told {
			s.SQL(", ")
		}
		told = true
		s.SQL(t.quote(column), " = ", expression)
	}
	stored := func(column, expression string) { // what stands about the row
		if column != "" {
			set(column, "(SELECT "+expression+" FROM {deferred} a WHERE a.feed = ")
			s.Word(feed).SQL(" AND a.row_id = ", t.outerRowID(), ")")
		}
	}
	if state.Status != "" {
		set(state.Status, t.cfg.Dialect.Literal(t.word(c)))
	}
	again := c.status == feeds.StatusRetry && c.tried || c.status == feeds.StatusScheduled
	if c.tried {
		stored(state.Attempts, t.fits(state.Attempts, "a.attempts"))
		stored(state.LastError, t.errorText(state.LastError))
	}
	if again || t.layout.native {
		stored(state.NextAttempt, t.ownTime("a.available_at"))
	} else if c.tried && t.columns[state.NextAttempt].nullable && state.NextAttempt != t.layout.Columns.DeliverAfter {
		set(state.NextAttempt, "NULL")
	}
	for _, column := range []string{state.ClaimedAt, state.ClaimedBy} {
		if t.columns[column].nullable {
			set(column, "NULL")
		}
	}
	if told {
		set(state.UpdatedAt, t.now())
	}
	return told
}

// outerRowID is the row's ID as text in a subquery, whatever columns that has.
func (t *table) outerRowID() string { return strings.Replace(t.rowID, t.id, t.name+"."+t.id, 1) }

// ownTime is a time of our tables as the table's own columns have it.
func (t *table) ownTime(expression string) string {
	if t.cfg.Dialect == sqltext.MySQL && !t.layout.native { // ours are in UTC; the zone of the table's own is that of the connection
		return t.now() + " + INTERVAL timestampdiff(MICROSECOND, " + t.cfg.Dialect.Now() + ", " + expression + ") MICROSECOND"
	}
	return expression
}

// fits keeps a number within what a small column takes.
func (t *table) fits(column, expression string) string {
	switch t.columns[column].kind {
	case "tinyint":
		return "least(" + expression + ", 127)"
	case "smallint", "int2":
		return "least(" + expression + ", 32767)"
	}
	return expression
}

// errorText is the last error, cut to what the column takes.
func (t *table) errorText(column string) string {
	info, text := t.columns[column], "a.last_error"
	if info.length > 0 {
		length := info.length
		if strings.HasSuffix(info.kind, "text") { // counted in bytes
			length /= 4
		}
		text = "left(" + text + ", " + strconv.Itoa(length) + ")"
	}
	if !info.nullable {
		text = "coalesce(" + text + ", '')"
	}
	return text
}
