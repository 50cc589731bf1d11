package redact

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// path is a parsed JSON path.
type path struct {
	text     string
	segments []segment
}

// segment is a step of a path from a value to some of its children.
type segment struct {
	deep  bool // matches at any depth below the value
	any   bool
	name  string
	index int // used if named is false
	named bool
}

// child is the name or index of a value in its parent.
type child struct {
	name  string
	index int
	named bool
}

// matches compares names case-insensitively: programs may read "Password" as "password".
func (s segment) matches(c child) bool {
	switch {
	case s.any:
		return true
	case s.named != c.named:
		return false
	case s.named:
		return strings.EqualFold(s.name, c.name)
	}
	return s.index == c.index
}

// describe formats the way to a value as a path. It cuts names, whose length is up to the message's
// producer.
func describe(way []child) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, c := range way {
		if b.Len() > maxShown {
			return b.String() + "…"
		}
		name := cut([]byte(c.name), maxShown)
		switch {
		case !c.named:
			b.WriteString("[" + strconv.Itoa(c.index) + "]")
		case name != "" && !strings.ContainsFunc(name, func(c rune) bool { return !nameChar(c) || !unicode.IsPrint(c) }):
			b.WriteString("." + name)
		default:
			b.WriteString("[" + strconv.Quote(name) + "]")
		}
	}
	return b.String()
}

const maxShown = 200

// maxPath limits the work per value.
const maxPath = 1000

// parser parses a path. It supports the parts of RFC 9535 that name locations: no slices, filters
// or functions, and no indexes from the end.
type parser struct {
	text string
	at   int
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", utf8.RuneCountInString(p.text[:p.at])+1, fmt.Sprintf(format, args...))
}

func parse(text string) (path, error) {
	p := &parser{text: text}
	if len(text) > maxPath {
		return path{}, p.errorf("longer than %d bytes", maxPath)
	}
	if !utf8.ValidString(text) {
		return path{}, p.errorf("not UTF-8")
	}
	if !p.take("$") {
		return path{}, p.errorf("a path begins with $")
	}
	out := path{text: text}
	for p.at < len(text) {
		s, err := p.segment()
		if err != nil {
			return path{}, err
		}
		out.segments = append(out.segments, s)
	}
	return out, nil
}

func (p *parser) take(s string) bool {
	ok := strings.HasPrefix(p.text[p.at:], s)
	if ok {
		p.at += len(s)
	}
	return ok
}

func (p *parser) segment() (segment, error) {
	deep := p.take("..")
	if p.take("[") {
		s, err := p.bracket()
		s.deep = deep
		return s, err
	}
	if !deep && !p.take(".") {
		return segment{}, p.errorf("want . or [")
	}
	if p.take("*") {
		return segment{deep: deep, any: true}, nil
	}
	name := p.text[p.at:]
	if end := strings.IndexFunc(name, func(c rune) bool { return !nameChar(c) }); end >= 0 {
		name = name[:end]
	}
	if name == "" {
		return segment{}, p.errorf("want a name or *; other names are written ['like this']")
	}
	p.at += len(name)
	return segment{deep: deep, named: true, name: name}, nil
}

func nameChar(c rune) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// bracket parses the segment after "[".
func (p *parser) bracket() (s segment, err error) {
	switch {
	case p.take("*"):
		s.any = true
	case p.take("'"):
		s.named = true
		s.name, err = p.quoted('\'')
	case p.take(`"`):
		s.named = true
		s.name, err = p.quoted('"')
	default:
		s.index, err = p.number()
	}
	if err == nil && !p.take("]") {
		err = p.errorf("want ]")
	}
	return s, err
}

// quoted parses a name up to its closing quote.
func (p *parser) quoted(quote byte) (string, error) {
	var name strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == quote:
			return name.String(), nil
		case c != '\\':
			name.WriteByte(c)
		case p.take(`\`), p.take("'"), p.take(`"`):
			name.WriteByte(p.text[p.at-1])
		default:
			p.at--
			return "", p.errorf(`after \ want a quote or \`)
		}
	}
	return "", p.errorf("the name does not end")
}

func (p *parser) number() (int, error) {
	begin, n := p.at, 0
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		if n > math.MaxInt32/10 {
			return 0, p.errorf("the index is too large")
		}
		n = n*10 + int(p.text[p.at]-'0')
		p.at++
	}
	if p.at == begin {
		return 0, p.errorf("want an index, * or a name in quotes")
	}
	return n, nil
}
