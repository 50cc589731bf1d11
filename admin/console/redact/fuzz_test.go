package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzPath(f *testing.F) {
	for _, s := range []string{"$", "$.a..b[0]['c'][*].*", `$["\\"]`, "$[", "$..", "$['\\"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		r, err := New([]string{text})
		if err == nil {
			r.Payload("", []byte(`{"a":[{"b":[1]}]}`), true)
		}
	})
}

// A planted secret is never in the output, whatever stands around it; and what was JSON is JSON.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{`1`, `{"a":[1e400,"\ud800"]}`, `[[]]`, `"}`, `{"a":1}, "b": {`, "\xff", `1}`, `"x","password":2`} {
		f.Add(s, "password")
		f.Add(s, "p\\u0061ssWORD")
	}
	r, err := New([]string{"$..password"})
	if err != nil {
		f.Fatal(err)
	}
	const secret = "PLANTED-7f3a"
	f.Fuzz(func(t *testing.T, around, key string) {
		if strings.Contains(around+key, secret) || strings.Count(around, "[")+strings.Count(around, "{") > maxDepth-10 {
			return
		}
		for _, in := range []string{
			`{"x":` + around + `,"password":"` + secret + `"}`,
			`[` + around + `,{"password":{"y":["` + secret + `"]}}]`,
			`{"` + key + `":"` + secret + `"}` + around,
		} {
			var decoded any
			d := json.NewDecoder(strings.NewReader(in))
			d.UseNumber()
			if d.Decode(&decoded) == nil && !covered(decoded, secret) {
				continue // the input has put the secret elsewhere
			}
			view := r.Payload("application/json", []byte(in), true)
			if strings.Contains(view.Text, secret) {
				t.Fatalf("%q\nshows %q", in, view.Text)
			}
			if json.Valid([]byte(in)) && utf8.ValidString(in) && view.Kind == "json" && !json.Valid([]byte(view.Text)) {
				t.Fatalf("%q\nbecomes %q", in, view.Text)
			}
			plain := new(Rules).Payload("application/json", []byte(in), true)
			if utf8.ValidString(in) && (plain.Kind == "json") != json.Valid([]byte(in)) {
				t.Fatalf("%q: taken for %s", in, plain.Kind)
			}
		}
	})
}

// covered reports whether a secret stands in a member named password, and nowhere else.
func covered(v any, secret string) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if !strings.EqualFold(name, "password") && !covered(value, secret) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if !covered(value, secret) {
				return false
			}
		}
	case string:
		return !strings.Contains(v, secret)
	}
	return true
}
