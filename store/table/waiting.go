package table

import (
	"slices"
	"strconv"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Waiting is the column by which rows that wait are told from others, and the words that they have there: none where that is null, and no
// column where all wait. What a relay has deferred itself is not found by them. A row that says it will be tried again, and was not
// deferred by a relay, was left by the worker that was there before.
func (l *Layout) Waiting() (column string, words []string) {
	if l.State.Status == "" {
		return l.State.PublishedAt, nil
	}
	s := &l.State
	words = slices.Clone(s.Pending)
	if s.Processing != "" {
		words = append(words, s.Processing)
	}
	if !l.native && s.Failed != "" && s.Dead != "" && s.Failed != s.Dead && !slices.Contains(words, s.Failed) {
		words = append(words, s.Failed)
	}
	return s.Status, words
}

// findWaiting finds out how a table that was adopted is read: by the index that has what waits in its order. An index that begins with the
// status has an order for each word alone, so that each is read by itself: together they would have to be sorted, and each read would
// look at all that waits.
func (t *table) findWaiting() {
	t.waits, t.byWaiting = []string{t.wait}, t.name
	column, words := t.layout.Waiting()
	first := t.layout.ID
	if len(t.layout.OrderBy) > 0 {
		first = t.layout.OrderBy[0]
	}
	x := t.catalog.WaitingIndex(column, words, first)
	if x == nil {
		return
	}
	if t.cfg.Dialect == sqltext.MySQL {
		t.byWaiting += " FORCE INDEX (" + t.quote(x.Name) + ")"
	}
	if len(words) > 0 && x.Where == "" {
		t.waits = nil
		for _, word := range words {
			t.waits = append(t.waits, t.isOneOf(column, []string{word}))
		}
	}
}

// firstWaiting adds a selection of the first rows that wait, in their order, and are not deferred. Its columns are called c0, c1 and so on.
func firstWaiting(f *served, limit int64, also func(*sqltext.Stmt), columns ...string) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		t := f.t
		names, order := make([]string, len(columns)), make([]string, len(t.order))
		for i := range columns {
			names[i] = "c" + strconv.Itoa(i)
		}
		for i := range t.order {
			order[i] = "o" + strconv.Itoa(i)
		}
		s.SQL("SELECT ", strings.Join(names, ", "), " FROM (")
		for i, wait := range t.waits {
			if i > 0 {
				s.SQL(" UNION ALL ")
			}
			s.SQL("(SELECT ")
			for i, column := range columns {
				s.SQL(column, " AS ", names[i], ", ")
			}
			for i, column := range t.order {
				if i > 0 {
					s.SQL(", ")
				}
				s.SQL(column, " AS ", order[i])
			}
			s.SQL(" FROM ", t.byWaiting, " WHERE ", wait)
			if also != nil {
				also(s)
			}
			s.Add(filtered(t, &f.only)).SQL(" AND ").Add(notDeferred(t, f.name)).SQL(" ORDER BY ", strings.Join(t.order, ", "), " LIMIT ").Number(limit).SQL(")")
		}
		return s.SQL(") waiting ORDER BY ", strings.Join(order, ", "), " LIMIT ").Number(limit)
	}
}
