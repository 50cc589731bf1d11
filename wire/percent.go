package wire

import "strings"

const hexDigits = "0123456789ABCDEF"

// mustEncode is the rule of the HTTP binding of CloudEvents: space, quote and percent sign, and everything that is not
// printable ASCII.
func mustEncode(b byte) bool { return b <= ' ' || b == '"' || b == '%' || b >= 0x7f }

func percentEncode(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && !mustEncode(s[i])
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
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

// percentDecode leaves what is no valid escape as it is, as the binding demands of tolerant receivers.
func percentDecode(s string) string {
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
