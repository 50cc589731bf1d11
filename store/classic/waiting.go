package classic

import (
	"slices"
	"strconv"
	"strings"
)

// waitingColumn is the column by which rows that wait are told from others; nothing where all wait.
func (l *Layout) waitingColumn() string {
	if l.State.Status != "" {
		return l.State.Status
	}
	return l.State.PublishedAt
}

// waitingWords are those of rows that a relay looks for. What it has deferred itself is not found by them. A row that says it will be tried
// again, and was not deferred by a relay, was left by the worker that was there before.
func (l *Layout) waitingWords() []string {
	s := &l.State
	words := slices.Clone(s.Pending)
	if s.Processing != "" {
		words = append(words, s.Processing)
	}
	if !l.native && s.Failed != "" && s.Dead != "" && s.Failed != s.Dead && !slices.Contains(words, s.Failed) {
		words = append(words, s.Failed)
	}
	return words
}

// waitingIndex returns the index by which rows that wait can be read in their order; nil if there is none.
func (t *Table) waitingIndex(l *Layout) *Index {
	if i := slices.IndexFunc(t.Indexes, func(x Index) bool { return t.findsWaiting(l, x) }); i >= 0 {
		return &t.Indexes[i]
	}
	return nil
}

func (t *Table) findsWaiting(l *Layout, x Index) bool {
	column, columns, first := l.waitingColumn(), x.Columns, l.ID
	if len(l.OrderBy) > 0 {
		first = l.OrderBy[0]
	}
	if t.Dialect == MySQL { // where the primary key follows in every index
		columns = append(slices.Clone(columns), t.PrimaryKey...)
	}
	switch {
	case x.Where != "":
		if column == "" || columns[0] != first || !strings.Contains(x.Where, column) {
			return false
		}
		if c := t.Column(column); isBoolean(c) || isTime(c) {
			return true
		}
		return !slices.ContainsFunc(l.waitingWords(), func(word string) bool { return !strings.Contains(x.Where, t.Dialect.literal(word)) })
	case column == "":
		return columns[0] == first
	}
	return len(columns) > 1 && columns[0] == column && columns[1] == first
}

// findWaiting finds out how a table that was adopted is read: by the index that has what waits in its order. An index that begins with the
// status has an order for each word alone, so that each is read by itself: together they would have to be sorted, and each read would
// look at all that waits.
func (t *table) findWaiting() {
	t.waits, t.byWaiting = []string{t.wait}, t.name
	x := t.catalog.waitingIndex(t.layout)
	if x == nil {
		return
	}
	if t.cfg.Dialect == MySQL {
		t.byWaiting += " FORCE INDEX (" + t.quote(x.Name) + ")"
	}
	if status := t.layout.State.Status; status != "" && x.Where == "" {
		t.waits = nil
		for _, word := range t.layout.waitingWords() {
			t.waits = append(t.waits, t.isOneOf(status, []string{word}))
		}
	}
}

// firstWaiting adds a selection of the first rows that wait, in their order, and are not deferred. Its columns are called c0, c1 and so on.
func (s *stmt) firstWaiting(f *served, limit int64, also func(*stmt), columns ...string) *stmt {
	t := f.t
	names, order := make([]string, len(columns)), make([]string, len(t.order))
	for i := range columns {
		names[i] = "c" + strconv.Itoa(i)
	}
	for i := range t.order {
		order[i] = "o" + strconv.Itoa(i)
	}
	s.sql("SELECT ", strings.Join(names, ", "), " FROM (")
	for i, wait := range t.waits {
		if i > 0 {
			s.sql(" UNION ALL ")
		}
		s.sql("(SELECT ")
		for i, column := range columns {
			s.sql(column, " AS ", names[i], ", ")
		}
		for i, column := range t.order {
			if i > 0 {
				s.sql(", ")
			}
			s.sql(column, " AS ", order[i])
		}
		s.sql(" FROM ", t.byWaiting, " WHERE ", wait)
		if also != nil {
			also(s)
		}
		s.only(t, &f.only).sql(" AND ").notAside(t, f.name).sql(" ORDER BY ", strings.Join(t.order, ", "), " LIMIT ").number(limit).sql(")")
	}
	return s.sql(") waiting ORDER BY ", strings.Join(order, ", "), " LIMIT ").number(limit)
}
