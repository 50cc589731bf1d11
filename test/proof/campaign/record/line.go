package record

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// line builds one line of a file, field by field.
type line struct {
	text   []byte
	fields int
	err    error
}

func (l *line) word(s string) {
	if strings.ContainsAny(s, "\t\n\r") && l.err == nil {
		l.err = fmt.Errorf("%q holds a tab or a line break", s)
	}
	l.tab()
	l.text = append(l.text, s...)
}

func (l *line) number(n int64) {
	l.tab()
	l.text = strconv.AppendInt(l.text, n, 10)
}

func (l *line) sum(n uint64) {
	l.tab()
	l.text = fmt.Appendf(l.text, "%016x", n)
}

func (l *line) flag(b bool) {
	if b {
		l.number(1)
	} else {
		l.number(0)
	}
}

func (l *line) time(t time.Time) {
	if t.IsZero() {
		l.number(0)
	} else {
		l.number(t.UnixMilli())
	}
}

func (l *line) tab() {
	if l.fields++; l.fields > 1 {
		l.text = append(l.text, '\t')
	}
}

// fields parses a line. Frequent words are interned.
type fields struct {
	rest  []byte
	more  bool
	err   error
	known map[string]string
}

var errFields = errors.New("wrong number of fields")

func (f *fields) next() []byte {
	if !f.more && f.err == nil {
		f.err = errFields
	}
	field, rest, more := bytes.Cut(f.rest, []byte{'\t'})
	f.rest, f.more = rest, more
	return field
}

func (f *fields) word() string { return string(f.next()) }

func (f *fields) name() string {
	field := f.next()
	if s, ok := f.known[string(field)]; ok {
		return s
	}
	s := string(field)
	if len(f.known) < 1<<16 {
		f.known[s] = s
	}
	return s
}

func (f *fields) number() int64 {
	field := f.next()
	n, ok := int64(0), len(field) > 0 && len(field) < 19
	for _, c := range field {
		n, ok = n*10+int64(c-'0'), ok && c >= '0' && c <= '9'
	}
	if ok {
		return n
	}
	n, err := strconv.ParseInt(string(field), 10, 64)
	f.fail(err)
	return n
}

func (f *fields) sum() uint64 {
	n, err := strconv.ParseUint(string(f.next()), 16, 64)
	f.fail(err)
	return n
}

func (f *fields) flag() bool {
	n := f.number()
	if n != 0 && n != 1 {
		f.fail(fmt.Errorf("%d is neither 0 nor 1", n))
	}
	return n == 1
}

func (f *fields) time() time.Time {
	n := f.number()
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

func (f *fields) fail(err error) {
	if err != nil && f.err == nil {
		f.err = err
	}
}

// read parses a whole line with the given function.
func (f *fields) read(text []byte, take func(*fields)) error {
	f.rest, f.more, f.err = text, true, nil
	take(f)
	if f.more {
		f.fail(errFields)
	}
	return f.err
}
