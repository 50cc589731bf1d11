package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing that is wrong with a configuration.
type Mistake struct {
	File    string `json:"file,omitempty"` // empty for a File built in Go, as are Line and Column
	Line    int    `json:"line,omitempty"` // counted from 1
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"` // such as "feeds.default.routes[2].name"
	Message string `json:"message"`
}

func (m Mistake) String() string {
	var b strings.Builder
	if m.File != "" {
		b.WriteString(m.File + ":")
		if m.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", m.Line, m.Column)
		}
		b.WriteString(" ")
	}
	if m.Path != "" {
		b.WriteString(m.Path + ": ")
	}
	return b.String() + m.Message
}

// maxMistakes is the maximum number of mistakes that are reported one by one.
const maxMistakes = 100

// Mistakes are all mistakes of a configuration, by line. If there are more than a hundred, the last
// entry counts the rest.
type Mistakes []Mistake //nolint:errname // it is the list as well as the error

// Error returns one line per mistake.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	return strings.Join(lines, "\n")
}

// Sorted sorts the mistakes by their position in the file, and returns them. Mistakes at the same
// position keep the order in which they were found.
func (m Mistakes) Sorted() Mistakes {
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return m
}

// asError returns nil for an empty list. A typed empty list would be an error that is not nil.
func (m Mistakes) asError() error {
	if len(m) == 0 {
		return nil
	}
	if m = m.Sorted(); len(m) > maxMistakes {
		rest := Mistake{File: m[0].File, Line: m[maxMistakes].Line, Column: m[maxMistakes].Column,
			Message: fmt.Sprintf("and %d more mistakes from here on", len(m)-maxMistakes)}
		m = append(m[:maxMistakes:maxMistakes], rest)
	}
	return m
}

// flatten returns the errors that [errors.Join] has joined.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}

// source records the file that a configuration was read from.
type source struct {
	name   string
	places map[string]place // by path
	hidden map[string]bool  // paths of values that came from a ${file:...}
}

type place struct{ line, column int }

// mistake creates a mistake at the position of the path. If the path is not in the file, it uses
// the position of the nearest parent.
func (s *source) mistake(path, format string, args ...any) Mistake {
	m := Mistake{File: s.name, Path: path, Message: fmt.Sprintf(format, args...)}
	for at := path; ; at = parent(at) {
		if p, ok := s.places[at]; ok {
			m.Line, m.Column = p.line, p.column
			return m
		}
		if at == "" {
			return m
		}
	}
}

// Mistake creates a [Mistake] at the position of a value, with a message from a caller that has
// checked it further.
func (f *File) Mistake(path, message string) Mistake { return f.source.mistake(path, "%s", message) }

// parent cuts the last part off a path. Names contain neither dots nor brackets.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }
