package idempotency

import (
	"errors"
	"fmt"
	"strings"
)

// Header is the name of the request header field.
const Header = "Idempotency-Key"

// ReplayedHeader is the name of the response header field that is "true" if the answer is a stored
// one.
const ReplayedHeader = "Idempotency-Replayed"

var errEmptyKey = errors.New("the key is empty")

// ParseKey returns the key in the value of an Idempotency-Key header field: a string as in RFC
// 8941, such as "8e03978e-40d5-43e8-bc93-6894a57f9324" with its quotes. The draft requires the
// quotes, but many clients leave them out. So a value without quotes is accepted too, if it
// consists of visible ASCII characters other than quotes, backslashes, commas and semicolons.
// Parameters are refused, because the draft has none.
func ParseKey(value string) (string, error) {
	value = strings.Trim(value, " \t")
	if !strings.HasPrefix(value, `"`) {
		for _, c := range []byte(value) {
			if c <= ' ' || c > '~' || strings.IndexByte("\"\\,;", c) >= 0 {
				return "", fmt.Errorf("a key without quotes has no %q", c)
			}
		}
		if value == "" {
			return "", errEmptyKey
		}
		return value, nil
	}
	var key strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			if i != len(value)-1 {
				return "", errors.New("there is something behind the closing quote")
			}
			if key.Len() == 0 {
				return "", errEmptyKey
			}
			return key.String(), nil
		case c == '\\':
			i++
			if i == len(value) || value[i] != '"' && value[i] != '\\' {
				return "", errors.New(`a backslash is followed by a quote or a backslash`)
			}
			key.WriteByte(value[i])
		case c < ' ' || c > '~':
			return "", fmt.Errorf("a key has no %q", c)
		default:
			key.WriteByte(c)
		}
	}
	return "", errors.New("the closing quote is missing")
}
