package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// reader walks through the nodes of a file, and records the position of each.
type reader struct {
	source
	expander
	mistakes Mistakes
}

func (r *reader) wrong(path, format string, args ...any) {
	r.mistakes = append(r.mistakes, r.mistake(path, format, args...))
}

// wrongAt reports a mistake at a node that has no path of its own.
func (r *reader) wrongAt(n *yaml.Node, path, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{r.name, n.Line, n.Column, path, fmt.Sprintf(format, args...)})
}

// visit calls what for each key of a mapping, with the value and its path. Null counts as an empty mapping.
func (r *reader) visit(n *yaml.Node, path string, what func(key string, keyNode, value *yaml.Node, path string)) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.wrong(path, "want keys with values, not %s", kindOf(n))
		return
	}
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if key.Kind != yaml.ScalarNode {
			r.wrongAt(key, path, "a key is %s, not text", kindOf(key))
			continue
		}
		if line, ok := lines[key.Value]; ok {
			r.wrongAt(key, at, "the key stands here a second time; the first is in line %d", line)
			continue
		}
		lines[key.Value] = key.Line
		r.places[at] = place{value.Line, value.Column}
		if isNull(value) { // a null value may have no position of its own
			r.places[at] = place{key.Line, key.Column}
		}
		what(key.Value, key, value, at)
	}
}

// named visits a mapping whose keys are names that the user gives.
func (r *reader) named(n *yaml.Node, path string, what func(name string, value *yaml.Node, path string)) {
	r.visit(n, path, func(name string, _, value *yaml.Node, path string) { what(name, value, path) })
}

// fields visits a mapping with fixed keys.
func (r *reader) fields(n *yaml.Node, path string, known map[string]func(value *yaml.Node, path string)) {
	r.visit(n, path, func(key string, keyNode, value *yaml.Node, path string) {
		read, ok := known[key]
		if !ok {
			r.unknown(keyNode, path, keys(known))
			return
		}
		read(value, path)
	})
}

func (r *reader) unknown(key *yaml.Node, path string, known []string) {
	near := didYouMean(key.Value, known)
	if near == "" {
		near = ": there are " + strings.Join(known, ", ")
	}
	r.wrongAt(key, path, "unknown key %q%s", key.Value, near)
}

// text reads a scalar, with its variables replaced.
func (r *reader) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		r.wrong(path, "want a single value, not %s", kindOf(n))
		return "", false
	}
	if isNull(n) {
		r.wrong(path, "the value is missing")
		return "", false
	}
	value, secret, err := r.expand(n.Value)
	if secret {
		r.hidden[path] = true
	}
	if err != nil {
		r.wrong(path, "%s", oneLine(err))
		return "", false
	}
	return value, true
}

func (r *reader) textInto(target *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) { *target, _ = r.text(n, path) }
}

// textsInto reads a list; a single value counts as a list of one.
func (r *reader) textsInto(target *[]string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			if value, ok := r.text(n, path); ok {
				*target = []string{value}
				r.places[item(path, 0)] = r.places[path]
			}
			return
		}
		r.items(n, path, func(_ int, n *yaml.Node, path string) {
			value, _ := r.text(n, path)
			*target = append(*target, value)
		})
	}
}

func (r *reader) items(n *yaml.Node, path string, what func(i int, n *yaml.Node, path string)) {
	if n.Kind != yaml.SequenceNode {
		r.wrong(path, "want a list, not %s", kindOf(n))
		return
	}
	for i, value := range n.Content {
		at := item(path, i)
		r.places[at] = place{value.Line, value.Column}
		what(i, value, at)
	}
}

func (r *reader) boolInto(target *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if value, ok := r.text(n, path); ok {
			switch value {
			case "true", "false":
				*target = value == "true"
			default:
				r.wrong(path, "%q is neither true nor false", value)
			}
		}
	}
}

func (r *reader) numberInto(target *int) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if value, ok := r.text(n, path); ok {
			number, err := strconv.Atoi(value)
			if err != nil || number < 1 {
				r.wrong(path, "%q is not a whole number of at least 1", value)
				return
			}
			*target = number
		}
	}
}

func (r *reader) durationInto(target *time.Duration) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		value, ok := r.text(n, path)
		if !ok {
			return
		}
		d, err := time.ParseDuration(value)
		if _, bare := strconv.ParseFloat(value, 64); bare == nil {
			r.wrong(path, "%q has no unit: write %ss, %sms or the like", value, value, value)
		} else if err != nil {
			r.wrong(path, "%q is not a duration such as 500ms, 10s or 1m30s", value)
		} else if d <= 0 {
			r.wrong(path, "%q is not more than 0", value)
		} else {
			*target = d
		}
	}
}

func (r *reader) durationsInto(target *[]time.Duration) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			r.wrong(path, "the list is empty")
			return
		}
		r.items(n, path, func(_ int, n *yaml.Node, path string) {
			var d time.Duration
			if r.durationInto(&d)(n, path); d > 0 {
				*target = append(*target, d)
			}
		})
	}
}

// reject refuses YAML features that make the file mean something else than it shows.
func (r *reader) reject(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.wrongAt(n, "", "aliases (*%s) are not supported: write the value out", n.Value)
	case n.Anchor != "":
		r.wrongAt(n, "", "anchors (&%s) are not supported: write the value out", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		r.wrongAt(n, "", "tags (%s) are not supported", n.Tag)
	}
	for _, child := range n.Content {
		r.reject(child)
	}
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "a single value"
	default:
		return "this"
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
