package postridertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// missing describes what of the JSON value want is not in got. It is empty if got contains want.
func missing(want, got []byte) string {
	w, err := decode(want)
	if err != nil {
		return "Payload of the Match is not JSON: " + err.Error()
	}
	g, err := decode(got)
	if err != nil {
		return fmt.Sprintf("Payload %s is not JSON: %v", short(got), err)
	}
	return differ("Payload", w, g)
}

// decode keeps numbers as text: large ones would lose digits.
func decode(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err = d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the JSON value")
	}
	return value, nil
}

func differ(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return unlike(path, want, got)
		}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			value, ok := g[name]
			if !ok {
				return path + "." + name + " is missing"
			}
			if why := differ(path+"."+name, w[name], value); why != "" {
				return why
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok {
			return unlike(path, want, got)
		}
		if len(w) != len(g) {
			return fmt.Sprintf("%s has %d elements, want %d", path, len(g), len(w))
		}
		for i := range w {
			if why := differ(path+"["+strconv.Itoa(i)+"]", w[i], g[i]); why != "" {
				return why
			}
		}
		return ""
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return ""
		}
	default: // string, bool, nil
		if want == got {
			return ""
		}
	}
	return unlike(path, want, got)
}

// sameNumber compares numbers by value, so that 30 equals 3e1. It compares integers by their
// digits.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if !strings.ContainsAny(a.String()+b.String(), ".eE") {
		return false
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

func unlike(path string, want, got any) string {
	return fmt.Sprintf("%s is %s, want %s", path, encode(got), encode(want))
}

func encode(v any) string {
	text, _ := json.Marshal(v) // cannot fail: v was decoded from JSON
	return short(text)
}
