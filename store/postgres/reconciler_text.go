package postgres

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
)

// textOf is a column as text: a string as it is, null as nothing, anything else as its JSON.
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

// hexBytes reads bytea as JSON has it.
func hexBytes(text string) ([]byte, error) {
	digits, ok := strings.CutPrefix(text, `\x`)
	if !ok && text != "" {
		return nil, errors.New("is not of type bytea; text belongs in column payload")
	}
	return hex.DecodeString(digits)
}
