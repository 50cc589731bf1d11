package reconcile

import (
	"fmt"
	"slices"
	"strings"
)

// KeyTemplate builds the dedup key of a row. It is a text with columns in braces, such as
// "enrollment:{id}".
type KeyTemplate struct {
	text     string
	literals []string // one more than columns
	columns  []string
}

// ParseKey parses a template. It must contain a column: otherwise all rows would have the same key.
func ParseKey(text string) (KeyTemplate, error) {
	t := KeyTemplate{text: text}
	rest := text
	for {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			break
		}
		end := strings.IndexAny(rest[at+1:], "{}")
		if rest[at] == '}' || end < 1 || rest[at+1+end] == '{' {
			return KeyTemplate{}, fmt.Errorf("reconcile: the braces in dedup key %q do not match", text)
		}
		t.literals, t.columns = append(t.literals, rest[:at]), append(t.columns, rest[at+1:at+1+end])
		rest = rest[at+end+2:]
	}
	t.literals = append(t.literals, rest)
	if len(t.columns) == 0 {
		return KeyTemplate{}, fmt.Errorf("reconcile: dedup key %q has no column in braces: all rows would count as one", text)
	}
	return t, nil
}

// Uses reports whether the template contains a column.
func (t KeyTemplate) Uses(column string) bool { return slices.Contains(t.columns, column) }

// Fill returns the key of a row. It returns an error if the row lacks a column or the column is
// empty.
func (t KeyTemplate) Fill(row func(column string) (string, bool)) (string, error) {
	var b strings.Builder
	for i, column := range t.columns {
		value, ok := row(column)
		if !ok {
			return "", fmt.Errorf("reconcile: dedup key %q: there is no column %q", t.text, column)
		}
		if value == "" {
			return "", fmt.Errorf("reconcile: dedup key %q: column %q is empty", t.text, column)
		}
		b.WriteString(t.literals[i] + value)
	}
	return b.String() + t.literals[len(t.columns)], nil
}
