package catalog

import (
	"slices"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// WaitingIndex returns the index by which rows that wait can be read in their order; nil if there is none. They are told from others by a
// column and its words, and their order begins with another.
func (t *Table) WaitingIndex(column string, words []string, first string) *Index {
	if i := slices.IndexFunc(t.Indexes, func(x Index) bool { return t.findsWaiting(column, words, first, x) }); i >= 0 {
		return &t.Indexes[i]
	}
	return nil
}

func (t *Table) findsWaiting(column string, words []string, first string, x Index) bool {
	columns := x.Columns
	if t.Dialect == sqltext.MySQL { // where the primary key follows in every index
		columns = append(slices.Clone(columns), t.PrimaryKey...)
	}
	switch {
	case x.Where != "":
		if column == "" || columns[0] != first || !strings.Contains(x.Where, column) {
			return false
		}
		if c := t.Column(column); IsBoolean(c) || IsTime(c) {
			return true
		}
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(x.Where, t.Dialect.Literal(word)) })
	case column == "":
		return columns[0] == first
	}
	return len(columns) > 1 && columns[0] == column && columns[1] == first
}
