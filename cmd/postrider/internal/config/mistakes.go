package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing that is wrong with a configuration.
type Mistake struct {
	File    string `json:"file,omitempty"` // empty for a File made in Go, as are Line and Column
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

// maxMistakes bounds how many are told apart.
const maxMistakes = 100

// Mistakes are all that is wrong with a configuration, by line. Of more than a hundred, the last only counts the rest.
type Mistakes []Mistake //nolint:errname // it is the list as well as the error

// Error returns one line a mistake.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	return strings.Join(lines, "\n")
}

// Sorted puts mistakes in the order of the file, and returns them. Of several at one place, the first found stands first.
func (m Mistakes) Sorted() Mistakes {
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return m
}

// asError avoids an error that is not nil and says nothing.
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

// flatten returns the errors that were put together with [errors.Join].
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

// source is what is remembered of the file that a configuration was read from.
type source struct {
	name   string
	places map[string]place // by path
	hidden map[string]bool  // paths of values that came out of a file for secrets
}

type place struct{ line, column int }

// mistake finds the place of a path or, if it is not in the file, of the nearest thing above it.
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

// Mistake makes a mistake out of what somebody else has found wrong with a value, at the value's place.
func (f *File) Mistake(path, message string) Mistake { return f.source.mistake(path, "%s", message) }

// parent cuts the last part off a path. Names contain neither dots nor brackets.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }
