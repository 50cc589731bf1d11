package saga

import (
	"encoding/json"
	"testing"
)

func TestEditsAreMerged(t *testing.T) {
	for _, test := range []struct{ stored, before, after, current, want string }{
		{`{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":2}`},
		{`{"a":1,"b":1}`, `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":7}`, `{"a":2,"b":7}`},
		{`{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":3}`, ``},
		{`{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":3}`, `{"a":3}`},
		{`{"a":1,"new":9223372036854775807}`, `{"a":1}`, `{"a":2}`, `{"a":1,"new":9223372036854775807}`, `{"a":2,"new":9223372036854775807}`},
		{`{"a":1}`, `{"a":1,"b":0}`, `{"a":1,"b":0}`, `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, `{"a":1,"b":0}`, `{"a":1,"b":5}`, `{"a":1}`, `{"a":1,"b":5}`},
		{`{"a":1}`, `{"a":1}`, `{}`, `{"a":1,"b":1}`, `{"b":1}`},
		{`{}`, `{}`, `{"a":1}`, `{"a":2}`, ``},
		{`1`, `1`, `2`, `1`, `2`},
		{`1`, `1`, `2`, `3`, ``},
		{`null`, `null`, `{"a":1}`, `null`, `{"a":1}`},
		{`{"a": 1}`, `{"a":1}`, `{"a":2}`, `{ "a":1 }`, `{"a":2}`},
	} {
		got, ok := edit{[]byte(test.stored), []byte(test.before), []byte(test.after)}.apply([]byte(test.current))
		if ok != (test.want != "") || ok && !same(got, []byte(test.want)) {
			t.Errorf("%+v: %s, %v", test, got, ok)
		}
	}
}

// FuzzMerge checks that an edit is applied unchanged if there is no concurrent one, and that a
// concurrent edit of another field is kept.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":1,"b":[2]}`, `{"a":2}`)
	f.Add(`{}`, `{"c":null}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		if !json.Valid([]byte(before)) || !json.Valid([]byte(after)) {
			return
		}
		e := edit{[]byte(before), []byte(before), []byte(after)}
		got, ok := e.apply([]byte(before))
		if !ok {
			t.Fatalf("%q to %q: refused", before, after)
		}
		was, want := fields([]byte(before)), fields([]byte(after))
		if was == nil || want == nil {
			return
		}
		if is := fields(got); len(is) != len(want) {
			t.Fatalf("%q to %q: %q", before, after, got)
		}
		was["of another"] = json.RawMessage("1")
		current, err := json.Marshal(was)
		if err != nil {
			return
		}
		if _, ours := want["of another"]; ours {
			return
		}
		if got, ok = e.apply(current); !ok || string(fields(got)["of another"]) != "1" {
			t.Fatalf("%q to %q: %q", before, after, got)
		}
	})
}
