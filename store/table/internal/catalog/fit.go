package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// CheckOrder refuses an order by what a claim or a failure changes: rows would go behind those that were written later.
func (t *Table) CheckOrder(columns []string) error {
	for _, name := range columns {
		if c := t.Column(name); c != nil && c.Touched {
			return fmt.Errorf("table: table %s cannot be ordered by %q, which changes whenever a row is updated (ON UPDATE CURRENT_TIMESTAMP). Name another "+
				"column with order_by, or define it without that", t.Name, name)
		}
	}
	return nil
}

// CheckID refuses an ID that several rows can have: they would be taken for one, and marked together.
func (t *Table) CheckID(id string) error {
	if t.Identifies(id) {
		return nil
	}
	return fmt.Errorf("table: the ID %q of table %s is not unique by itself%s: rows of the same ID would be taken for one. Name a column that is, with "+
		"columns: {id: NAME}, or see to it with CREATE UNIQUE INDEX ON %s (%s)", id, t.Name, t.KeyText(), t.Dialect.QuoteTable(t.Name), t.Dialect.Quote(id))
}

// KeyText names the columns of a primary key that has several, for an error; otherwise it is empty.
func (t *Table) KeyText() string {
	if len(t.PrimaryKey) < 2 {
		return ""
	}
	return " (the primary key is " + strings.Join(t.PrimaryKey, ", ") + ")"
}

// Identifies reports whether no two rows have the same in a column: an index sees to it, the server counts there, or it is a UUID that
// is called an ID, as in tables that are divided by another column.
func (t *Table) Identifies(column string) bool {
	c := t.Column(column)
	if c == nil {
		return false
	}
	named := Has(c, "uuid", "binary(16)") && slices.Contains(Synonyms("id"), Plain(column))
	return c.Counts && IsInteger(c) || named || t.UniqueIndex(column) != ""
}

// UniqueIndex is an index of one column alone that lets no two rows have the same; nothing if there is none.
func (t *Table) UniqueIndex(column string) string {
	if t.Dialect == sqltext.MySQL && slices.Equal(t.PrimaryKey, []string{column}) {
		return "PRIMARY" // which has the rows themselves
	}
	for _, x := range t.Indexes {
		if x.Unique && x.Where == "" && len(x.Columns) == 1 && x.Columns[0] == column {
			return x.Name
		}
	}
	return ""
}

// Leads is an index that begins with a column; nothing if there is none.
func (t *Table) Leads(column string) string {
	for _, x := range t.Indexes {
		if x.Where == "" && x.Columns[0] == column {
			return x.Name
		}
	}
	return ""
}

var lengthOf = regexp.MustCompile(`^(?:varchar|char|character|character varying)\((\d+)\)`)

// Refuses says why a column cannot hold a word; nothing if it can.
func (c *Column) Refuses(d sqltext.Dialect, word string) string {
	if len(c.Allowed) > 0 && !slices.ContainsFunc(c.Allowed, func(a string) bool { return a == word || d == sqltext.MySQL && strings.EqualFold(a, word) }) {
		return "it allows " + QuotedList(c.Allowed)
	}
	if found := lengthOf.FindStringSubmatch(c.Type); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil && utf8.RuneCountInString(word) > n {
			return "it is of type " + c.Type
		}
	}
	if _, err := strconv.ParseInt(word, 10, 64); err != nil && IsInteger(c) {
		return "it is of type " + c.Type
	}
	if _, err := strconv.ParseBool(word); err != nil && c.Type == "boolean" && !slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(word)) {
		return "it is of type " + c.Type
	}
	return ""
}

// QuotedList names words.
func QuotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}
