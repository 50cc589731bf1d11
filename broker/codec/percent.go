package codec

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

func (c *Codec) escape(value string) string {
	if c.dialect.Percent {
		return percentEncode(value)
	}
	return value
}

// unescape decodes a value and rejects a result that is not UTF-8, as the bindings require.
func (c *Codec) unescape(value string) (string, error) {
	if c.dialect.Percent {
		value = percentDecode(value)
	}
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("CloudEvent has an attribute %q that is not UTF-8", value)
	}
	return value, nil
}

// mustEncode implements the rule of the CloudEvents HTTP binding: encode space, quote, percent
// sign, and everything that is not printable ASCII.
func mustEncode(b byte) bool { return b <= ' ' || b == '"' || b == '%' || b >= 0x7f }

func percentEncode(s string) string {
	extra := 0
	for i := range len(s) {
		if mustEncode(s[i]) {
			extra += 2
		}
	}
	if extra == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + extra)
	for i := range len(s) {
		if mustEncode(s[i]) {
			b.WriteByte('%')
			b.WriteByte(hexDigits[s[i]>>4])
			b.WriteByte(hexDigits[s[i]&15])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// percentDecode also accepts quoted strings, which earlier versions of the binding allowed. It
// leaves a percent sign unchanged if it does not begin an escape.
func percentDecode(s string) string {
	s = unquote(s)
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, ok1 := unhex(s[i+1])
			low, ok2 := unhex(s[i+2])
			if ok1 && ok2 {
				b = append(b, high<<4|low)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if !strings.Contains(s, `\`) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
