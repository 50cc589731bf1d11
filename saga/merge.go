package saga

import (
	"bytes"
	"encoding/json"
)

// edit is what a step has changed of the data: from what was stored it made before, and then after.
type edit struct{ stored, before, after []byte }

// apply does the same to current, which others may have changed meanwhile. It returns false if they have changed the same.
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

// fields are the members of a JSON object, or nil if it is none.
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
