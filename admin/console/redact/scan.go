package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	// maxDepth is the maximum nesting of JSON. It protects the stack of the process.
	maxDepth = 500
	// maxFound is the maximum number of redacted paths that are listed.
	maxFound = 100
)

var errDepth = errors.New("it is nested too deeply")

// scanner copies JSON and indents it. It does not change anything that is not masked: numbers,
// escapes, order and duplicate keys stay as they were written.
type scanner struct {
	in    []byte
	at    int
	paths []path
	way   []child  // from the root to the current value
	found []string // paths of masked values
	out   output
}

// state is a path with the number of its segments that match the way to a value.
type state struct{ path, done int }

func newScanner(in []byte, paths []path) *scanner {
	return &scanner{in: in, paths: paths, found: []string{}}
}

// run copies the whole input, or returns why it is not JSON. It reads to the end even when the
// output is full.
func (s *scanner) run() error {
	var states []state
	whole := false
	for i, p := range s.paths {
		states = append(states, state{path: i})
		if len(p.segments) == 0 {
			whole = true
		}
	}
	if err := s.masked(states, whole, 0); err != nil {
		return err
	}
	s.space()
	if s.at < len(s.in) {
		return s.unexpected()
	}
	return nil
}

// masked copies a value, or the mask instead. It still parses the masked value, which must be valid
// JSON.
func (s *scanner) masked(states []state, mask bool, depth int) error {
	if !mask {
		return s.value(states, depth)
	}
	if len(s.found) < maxFound {
		s.found = append(s.found, describe(s.way))
	}
	s.out.string(`"` + Mask + `"`)
	s.out.mute++
	err := s.value(nil, depth)
	s.out.mute--
	return err
}

func (s *scanner) value(states []state, depth int) error {
	s.space()
	if s.at >= len(s.in) {
		return s.unexpected()
	}
	switch c := s.in[s.at]; c {
	case '{', '[':
		if depth >= maxDepth {
			return errDepth
		}
		return s.container(states, depth, c == '{')
	case '"':
		text, err := s.text()
		s.out.bytes(text)
		return err
	default:
		return s.scalar()
	}
}

// container copies an object or an array.
func (s *scanner) container(states []state, depth int, object bool) error {
	end := byte(']')
	if object {
		end = '}'
	}
	s.out.bytes(s.in[s.at : s.at+1])
	s.at++
	for n := 0; ; n++ {
		s.space()
		if n == 0 && s.next(end) {
			s.out.bytes([]byte{end})
			return nil
		}
		if n > 0 {
			s.out.string(",")
		}
		s.out.line(depth + 1)
		c := child{index: n, named: object}
		if object {
			if err := s.key(&c); err != nil {
				return err
			}
		}
		below, mask := s.walk(states, c)
		s.way = append(s.way, c)
		if err := s.masked(below, mask, depth+1); err != nil {
			return err
		}
		s.way = s.way[:len(s.way)-1]
		s.space()
		if s.next(end) {
			s.out.line(depth)
			s.out.bytes([]byte{end})
			return nil
		}
		if !s.next(',') {
			return s.unexpected()
		}
	}
}

// key copies the name of a member, and the colon after it.
func (s *scanner) key(c *child) error {
	if s.at >= len(s.in) || s.in[s.at] != '"' {
		return s.unexpected()
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	c.name = string(text[1 : len(text)-1])
	if strings.IndexByte(c.name, '\\') >= 0 { // an escaped name must match the rules too
		if err := json.Unmarshal(text, &c.name); err != nil {
			return s.unexpected()
		}
	}
	s.out.bytes(text)
	s.out.string(": ")
	s.space()
	if !s.next(':') {
		return s.unexpected()
	}
	return nil
}

// walk advances all paths to a child, and reports whether one of them ends there.
func (s *scanner) walk(states []state, c child) (below []state, mask bool) {
	for _, st := range states {
		segments := s.paths[st.path].segments
		if st.done == len(segments) {
			continue
		}
		seg := segments[st.done]
		if seg.deep {
			below = add(below, st)
		}
		if !seg.matches(c) {
			continue
		}
		below = add(below, state{st.path, st.done + 1})
		if st.done+1 == len(segments) {
			mask = true
		}
	}
	return below, mask
}

// add appends a state that is not in the list yet. With duplicates, "$..a..a" would double the
// states at every level.
func add(states []state, st state) []state {
	for _, have := range states {
		if have == st {
			return states
		}
	}
	return append(states, st)
}

func (s *scanner) space() {
	for s.at < len(s.in) && strings.IndexByte(" \t\r\n", s.in[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) next(c byte) bool {
	ok := s.at < len(s.in) && s.in[s.at] == c
	if ok {
		s.at++
	}
	return ok
}

func (s *scanner) unexpected() error {
	if s.at >= len(s.in) {
		return errors.New("it is not valid JSON: it ends too early")
	}
	return fmt.Errorf("it is not valid JSON at byte %d", s.at+1)
}
