package route

import (
	"errors"
	"slices"
	"strings"

	"github.com/postrider/postrider"
)

// Match says which messages are meant. A pattern is a text in which "*" stands for any run of characters, also for none;
// upper and lower case differ. A list matches when one of its patterns does, an empty list matches all, and all lists
// must match. The pattern "" means messages without a topic or without a tenant.
type Match struct {
	Types   []string // of Message.Type
	Topics  []string // of Message.Topic
	Tenants []string // of Message.TenantID
}

// Matches reports whether a message is meant.
func (m *Match) Matches(msg *postrider.Message) bool {
	return m.matches(labels{msg.Type, msg.Topic, msg.TenantID})
}

// matches is what defines the meaning of a Match. The rest of the package remembers its answers.
func (m *Match) matches(l labels) bool {
	return anyMatches(m.Types, l.kind) && anyMatches(m.Topics, l.topic) && anyMatches(m.Tenants, l.tenant)
}

// IsEmpty reports whether every message is meant.
func (m *Match) IsEmpty() bool { return len(m.Types) == 0 && len(m.Topics) == 0 && len(m.Tenants) == 0 }

// dimensions are the labels that the lists look at.
func (m *Match) dimensions() dimensions {
	return dimensions{len(m.Types) > 0, len(m.Topics) > 0, len(m.Tenants) > 0}
}

// check reports patterns that can match nothing, each with the field that it stands in.
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

// covers reports whether every message that other matches is matched by m too. It may miss that several patterns
// together cover one.
func (m *Match) covers(other *Match) bool {
	return listCovers(m.Types, other.Types) && listCovers(m.Topics, other.Topics) && listCovers(m.Tenants, other.Tenants)
}

// listCovers uses that a pattern which matches the text of another one matches all that the other does: only a "*"
// matches a "*".
func listCovers(patterns, others []string) bool {
	if len(patterns) == 0 || slices.Contains(patterns, "*") {
		return true
	}
	if len(others) == 0 {
		return false
	}
	return !slices.ContainsFunc(others, func(other string) bool { return !anyMatches(patterns, other) })
}

// Excludes reports whether no message can be meant by both.
func (m *Match) Excludes(other *Match) bool {
	return listExcludes(m.Types, other.Types) || listExcludes(m.Topics, other.Topics) || listExcludes(m.Tenants, other.Tenants)
}

// listExcludes reports whether no text matches a pattern of both lists; an empty list matches all.
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

// meet reports whether some text matches both patterns. It goes through the pairs of places in them, each once.
func meet(a, b string) bool {
	reached := make([]bool, len(b)+1) // from a place in a, at which places of b
	reached[0] = true
	for i := 0; ; i++ {
		for j := range b { // a "*" of b can stand for nothing
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
				for k := j; k <= len(b); k++ { // it stands for any part of the rest of b
					next[k] = true
				}
			case j < len(b) && b[j] == '*': // which takes the character, and more
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

// wildcard compares a pattern with a text. A mismatch goes back to the last "*" only, so that no pattern is slow.
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

// labels are the fields of a message that rules look at.
type labels struct{ kind, topic, tenant string }

// dimensions say which labels matter to somebody.
type dimensions struct{ kind, topic, tenant bool }

func (d dimensions) or(other dimensions) dimensions {
	return dimensions{d.kind || other.kind, d.topic || other.topic, d.tenant || other.tenant}
}

// of returns the labels that matter; the others are left empty, so that they do not fill a cache.
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
