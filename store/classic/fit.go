package classic

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Check reports what in a table would make a relay mark rows that it has not sent, or send rows that it cannot mark. A store does so before
// the first message.
func (t *Table) Check(l *Layout) error {
	return errors.Join(t.checkID(l.ID), t.checkOrder(l.OrderBy), t.checkWords(l))
}

// checkOrder refuses an order by what a claim or a failure changes: rows would go behind those that were written later.
func (t *Table) checkOrder(columns []string) error {
	for _, name := range columns {
		if c := t.Column(name); c != nil && c.Touched {
			return fmt.Errorf("classic: table %s cannot be ordered by %q, which changes whenever a row is updated (ON UPDATE CURRENT_TIMESTAMP). Name another "+
				"column with order_by, or define it without that", t.Name, name)
		}
	}
	return nil
}

// checkID refuses an ID that several rows can have: they would be taken for one, and marked together.
func (t *Table) checkID(id string) error {
	if t.identifies(id) {
		return nil
	}
	return fmt.Errorf("classic: the ID %q of table %s is not unique by itself%s: rows of the same ID would be taken for one. Name a column that is, with "+
		"columns: {id: NAME}, or see to it with CREATE UNIQUE INDEX ON %s (%s)", id, t.Name, t.keyText(), t.Dialect.quoteTable(t.Name), t.Dialect.quote(id))
}

func (t *Table) keyText() string {
	if len(t.PrimaryKey) < 2 {
		return ""
	}
	return " (the primary key is " + strings.Join(t.PrimaryKey, ", ") + ")"
}

// identifies reports whether no two rows have the same in a column: an index sees to it, the server counts there, or it is a UUID that
// is called an ID, as in tables that are divided by another column.
func (t *Table) identifies(column string) bool {
	c := t.Column(column)
	if c == nil {
		return false
	}
	named := has(c, "uuid", "binary(16)") && slices.Contains(synonyms("id"), plain(column))
	return c.Counts && isInteger(c) || named || t.uniqueIndex(column) != ""
}

// uniqueIndex is an index of one column alone that lets no two rows have the same; nothing if there is none.
func (t *Table) uniqueIndex(column string) string {
	if t.Dialect == MySQL && slices.Equal(t.PrimaryKey, []string{column}) {
		return "PRIMARY" // which has the rows themselves
	}
	for _, x := range t.Indexes {
		if x.Unique && x.Where == "" && len(x.Columns) == 1 && x.Columns[0] == column {
			return x.Name
		}
	}
	return ""
}

// leads is an index that begins with a column; nothing if there is none.
func (t *Table) leads(column string) string {
	for _, x := range t.Indexes {
		if x.Where == "" && x.Columns[0] == column {
			return x.Name
		}
	}
	return ""
}

// checkWords refuses words that the status cannot hold.
func (t *Table) checkWords(l *Layout) error {
	s := &l.State
	c := t.Column(s.Status)
	if c == nil {
		return nil
	}
	var errs []error
	seen := map[string]bool{"": true}
	for _, x := range append(wordsAs("pending", s.Pending...),
		[2]string{"processing", s.Processing}, [2]string{"published", s.Published}, [2]string{"failed", s.Failed}, [2]string{"dead", s.Dead}) {
		if why := c.refuses(t.Dialect, x[1]); !seen[x[1]] && why != "" {
			errs = append(errs, fmt.Errorf("classic: the status %q of table %s cannot hold the word %q for %s rows: %s. Change the column, or the word with "+
				"status: {%s: WORD}", c.Name, t.Name, x[1], x[0], why, x[0]))
		}
		seen[x[1]] = true
	}
	return errors.Join(errs...)
}

func wordsAs(meaning string, words ...string) (all [][2]string) {
	for _, word := range words {
		all = append(all, [2]string{meaning, word})
	}
	return all
}

var lengthOf = regexp.MustCompile(`^(?:varchar|char|character|character varying)\((\d+)\)`)

// refuses says why a column cannot hold a word; nothing if it can.
func (c *TableColumn) refuses(d Dialect, word string) string {
	if len(c.Allowed) > 0 && !slices.ContainsFunc(c.Allowed, func(a string) bool { return a == word || d == MySQL && strings.EqualFold(a, word) }) {
		return "it allows " + quotedList(c.Allowed)
	}
	if found := lengthOf.FindStringSubmatch(c.Type); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil && utf8.RuneCountInString(word) > n {
			return "it is of type " + c.Type
		}
	}
	if _, err := strconv.ParseInt(word, 10, 64); err != nil && isInteger(c) {
		return "it is of type " + c.Type
	}
	if _, err := strconv.ParseBool(word); err != nil && c.Type == "boolean" && !slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(word)) {
		return "it is of type " + c.Type
	}
	return ""
}
