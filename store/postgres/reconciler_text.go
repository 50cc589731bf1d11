package postgres

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
)

// textOf returns a column as text: a string unchanged, null as an empty text, anything else as
// JSON.
func textOf(value json.RawMessage) string {
	var text *string
	if json.Unmarshal(value, &text) == nil {
		if text == nil {
			return ""
		}
		return *text
	}
	return string(value)
}

// hexBytes decodes a bytea value as it appears in JSON.
func hexBytes(text string) ([]byte, error) {
	digits, ok := strings.CutPrefix(text, `\x`)
	if !ok && text != "" {
		return nil, errors.New("is not of type bytea; text belongs in column payload")
	}
	return hex.DecodeString(digits)
}
