package headers

import (
	"encoding/json"
	"maps"
	"testing"
)

// FuzzParse: no content of a headers column makes Parse fail or is lost, and an object of strings
// is returned unchanged.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"a":"b"}`, `{"a":1,"b":null,"c":{"d":[]}}`, `[1]`, `{`, `"x"`, "null", `{"a":"\ud800"}`, "\xff", `{"a":1,"a":2}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found := Parse(text)
		if len(text) > 0 && len(found) == 0 {
			var empty map[string]json.RawMessage
			if err := json.Unmarshal(text, &empty); err != nil || len(empty) > 0 {
				t.Fatalf("%q was thrown away", text)
			}
		}
		again, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if back := Parse(again); !maps.Equal(back, found) && valid(found) {
			t.Errorf("%q became %q", found, back)
		}
	})
}

// valid reports whether JSON can represent all strings: encoding replaces invalid UTF-8 by U+FFFD.
func valid(all map[string]string) bool {
	text, err := json.Marshal(all)
	var back map[string]string
	return err == nil && json.Unmarshal(text, &back) == nil && maps.Equal(back, all)
}
