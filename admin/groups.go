package admin

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// Groups are messages that are deferred, by error.
type Groups struct {
	Sampled int     `json:"sampled"`
	All     bool    `json:"all"` // nothing was left out
	Groups  []Group `json:"groups"`
}

// Group is the messages that have failed with the same error.
type Group struct {
	Error  string    `json:"error"`  // of the newest, as it is
	Words  string    `json:"words"`  // for [Filter.Error], so that it chooses these
	Count  int       `json:"count"`  // of those sampled
	Newest time.Time `json:"newest"` // when it was deferred
	Types  []string  `json:"types"`  // of messages, a few
	Feeds  []string  `json:"feeds"`
}

// GroupErrors groups a sample by error, most frequent first, at most limit. It is for those who implement [DeadLetters].
func GroupErrors(sample []feeds.Deferred, limit int) []Group {
	byWords := make(map[string]*Group)
	for i := range sample {
		d := &sample[i]
		words := errorWords(d.LastError)
		g, known := byWords[words]
		if !known {
			g = &Group{Words: words}
			byWords[words] = g
		}
		g.Count++
		if !known || d.DeferredAt.After(g.Newest) {
			g.Error, g.Newest = d.LastError, d.DeferredAt
		}
		g.Types, g.Feeds = note(g.Types, d.Type), note(g.Feeds, d.Feed)
	}
	groups := make([]Group, 0, len(byWords))
	for _, g := range byWords {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Newest.Compare(a.Newest), cmp.Compare(a.Words, b.Words))
	})
	return groups[:min(len(groups), limit)]
}

// aFew is how many types and feeds a group names.
const aFew = 5

func note(names []string, name string) []string {
	if len(names) < aFew && !slices.Contains(names, name) {
		names = append(names, name)
	}
	return names
}

// errorWords are the words of an error without what differs from one message to the next: numbers, IDs and what holds a
// digit otherwise.
func errorWords(text string) string {
	var words []string
	for field := range strings.FieldsSeq(text) { // an ID is dropped as a whole, also its parts without digits
		if !strings.ContainsAny(field, "0123456789") {
			words = append(words, split(field)...)
		}
	}
	return strings.Join(words[:min(len(words), 30)], " ")
}
