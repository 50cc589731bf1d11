package saga

import (
	"bytes"
	"encoding/json"
)

// edit is a step's change of the data. stored is the data as read, before is its encoding by this
// program, and after is the encoding with the step's changes.
type edit struct{ stored, before, after []byte }

// apply applies the change to current, which other steps may have changed meanwhile. It returns
// false if they changed the same fields.
func (e edit) apply(current []byte) (_ []byte, ok bool) {
	if bytes.Equal(e.before, e.after) {
		return current, true
	}
	before, after := fields(e.before), fields(e.after)
	stored, now := fields(e.stored), fields(current)
	if before == nil || after == nil || stored == nil || now == nil {
		return e.after, same(e.stored, current)
	}
	for name, was := range before {
		if is, kept := after[name]; kept && same(was, is) {
			delete(after, name)
			continue
		}
		if !same(stored[name], now[name]) {
			return nil, false
		}
		delete(now, name)
	}
	for name, is := range after {
		if _, there := before[name]; !there && !same(stored[name], now[name]) {
			return nil, false
		}
		now[name] = is
	}
	merged, err := json.Marshal(now)
	return merged, err == nil
}

// fields returns the members of a JSON object, or nil if the text is not one.
func fields(text []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}

func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
