package route

import (
	"errors"
	"slices"
	"strings"

	"github.com/postrider/postrider"
)

// Match selects messages. In a pattern, "*" stands for any run of characters, including none;
// patterns are case-sensitive. A list matches if one of its patterns does, an empty list matches
// everything, and all lists must match. The pattern "" selects messages without a topic or without
// a tenant.
type Match struct {
	Types   []string // of Message.Type
	Topics  []string // of Message.Topic
	Tenants []string // of Message.TenantID
}

// Matches reports whether m selects the message.
func (m *Match) Matches(msg *postrider.Message) bool {
	return m.matches(labels{msg.Type, msg.Topic, msg.TenantID})
}

// matches defines the meaning of a Match. The rest of the package caches its results.
func (m *Match) matches(l labels) bool {
	return anyMatches(m.Types, l.kind) && anyMatches(m.Topics, l.topic) && anyMatches(m.Tenants, l.tenant)
}

// IsEmpty reports whether m selects every message.
func (m *Match) IsEmpty() bool { return len(m.Types) == 0 && len(m.Topics) == 0 && len(m.Tenants) == 0 }

// dimensions returns the labels that the lists depend on.
func (m *Match) dimensions() dimensions {
	return dimensions{len(m.Types) > 0, len(m.Topics) > 0, len(m.Tenants) > 0}
}

// check reports invalid patterns, each with its field.
func (m *Match) check(report func(field string, err error)) {
	for i, pattern := range m.Types {
		if pattern == "" {
			report(index("types", i), errors.New("the pattern is empty, but every message has a type"))
		}
	}
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"types", m.Types}, {"topics", m.Topics}, {"tenants", m.Tenants}} {
		for i, pattern := range list.patterns {
			if strings.ContainsFunc(pattern, isControl) {
				report(index(list.field, i), errors.New("the pattern contains a control character"))
			}
		}
	}
}

// covers reports whether m matches every message that other matches. It may return false if only
// several patterns together cover one.
func (m *Match) covers(other *Match) bool {
	return listCovers(m.Types, other.Types) && listCovers(m.Topics, other.Topics) && listCovers(m.Tenants, other.Tenants)
}

// listCovers relies on this: a pattern that matches the text of another pattern matches everything
// that the other matches, because only "*" matches "*".
func listCovers(patterns, others []string) bool {
	if len(patterns) == 0 || slices.Contains(patterns, "*") {
		return true
	}
	if len(others) == 0 {
		return false
	}
	return !slices.ContainsFunc(others, func(other string) bool { return !anyMatches(patterns, other) })
}

// Excludes reports whether no message can match both.
func (m *Match) Excludes(other *Match) bool {
	return listExcludes(m.Types, other.Types) || listExcludes(m.Topics, other.Topics) || listExcludes(m.Tenants, other.Tenants)
}

// listExcludes reports whether no text matches both lists; an empty list matches everything.
func listExcludes(patterns, others []string) bool {
	if len(patterns) == 0 || len(others) == 0 {
		return false
	}
	for _, p := range patterns {
		for _, o := range others {
			if meet(p, o) {
				return false
			}
		}
	}
	return true
}

// meet reports whether some text matches both patterns. It visits each pair of positions in them
// once.
func meet(a, b string) bool {
	reached := make([]bool, len(b)+1) // the positions in b that are reachable with the current prefix of a
	reached[0] = true
	for i := 0; ; i++ {
		for j := range b { // a "*" of b can match nothing
			reached[j+1] = reached[j+1] || reached[j] && b[j] == '*'
		}
		if i == len(a) {
			return reached[len(b)]
		}
		next := make([]bool, len(b)+1)
		for j, ok := range reached {
			switch {
			case !ok:
			case a[i] == '*':
				for k := j; k <= len(b); k++ { // it can match any part of the rest of b
					next[k] = true
				}
			case j < len(b) && b[j] == '*': // it consumes the character and can match more
				next[j] = true
			case j < len(b) && b[j] == a[i]:
				next[j+1] = true
			}
		}
		reached = next
	}
}

func anyMatches(patterns []string, text string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, pattern := range patterns {
		if wildcard(pattern, text) {
			return true
		}
	}
	return false
}

// wildcard matches a text against a pattern. It backtracks only to the last "*", so that no pattern
// takes exponential time.
func wildcard(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// labels are the fields of a message that rules match.
type labels struct{ kind, topic, tenant string }

// dimensions states which labels a result depends on.
type dimensions struct{ kind, topic, tenant bool }

func (d dimensions) or(other dimensions) dimensions {
	return dimensions{d.kind || other.kind, d.topic || other.topic, d.tenant || other.tenant}
}

// of returns the labels that matter. The others stay empty, to keep the cache small.
func (d dimensions) of(m *postrider.Message) labels {
	var l labels
	if d.kind {
		l.kind = m.Type
	}
	if d.topic {
		l.topic = m.Topic
	}
	if d.tenant {
		l.tenant = m.TenantID
	}
	return l
}
