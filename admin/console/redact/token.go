package redact

import "encoding/json"

// text reads a string as it is written, with its quotes.
func (s *scanner) text() ([]byte, error) {
	begin := s.at
	for s.at++; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; {
		case c == '"':
			s.at++
			text := s.in[begin:s.at]
			if !json.Valid(text) { // checks the escapes
				s.at = begin
				return nil, s.unexpected()
			}
			return text, nil
		case c == '\\':
			s.at++
		case c < ' ':
			return nil, s.unexpected()
		}
	}
	return nil, s.unexpected()
}

// scalar copies a number, true, false or null.
func (s *scanner) scalar() error {
	begin := s.at
	for s.at < len(s.in) && scalarChar(s.in[s.at]) {
		s.at++
	}
	text := s.in[begin:s.at]
	if !json.Valid(text) {
		s.at = begin
		return s.unexpected()
	}
	s.out.bytes(text)
	return nil
}

func scalarChar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// output collects at most maxText bytes.
type output struct {
	buf  []byte
	mute int // above 0: inside a masked value
	full bool
}

func (o *output) bytes(b []byte) {
	if o.mute > 0 || o.full {
		return
	}
	if len(o.buf)+len(b) > maxText {
		b, o.full = []byte(cut(b, maxText-len(o.buf))), true
	}
	o.buf = append(o.buf, b...)
}

func (o *output) string(s string) { o.bytes([]byte(s)) }

// indents is a line break with the deepest indentation.
var indents = func() []byte {
	b := []byte{'\n'}
	for range 2 * (maxDepth + 1) {
		b = append(b, ' ')
	}
	return b
}()

func (o *output) line(depth int) { o.bytes(indents[:1+2*depth]) }

func (o *output) text() string { return string(o.buf) }
