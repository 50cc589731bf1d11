// Package headers decodes message headers that are stored as JSON.
package headers

import "encoding/json"

// Parse decodes a JSON object. A value that is not a string keeps its JSON form, and so does text
// that is not an object.
func Parse(text []byte) map[string]string {
	if len(text) == 0 {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(text, &raw) != nil {
		return map[string]string{"headers": string(text)}
	}
	headers := make(map[string]string, len(raw))
	for name, value := range raw {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		headers[name] = s
	}
	return headers
}
