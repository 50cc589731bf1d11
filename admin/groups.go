package admin

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// Groups are deferred messages, grouped by error.
type Groups struct {
	Sampled int     `json:"sampled"`
	All     bool    `json:"all"` // the sample contains all messages
	Groups  []Group `json:"groups"`
}

// Group is the messages that failed with the same error.
type Group struct {
	Error  string    `json:"error"`  // error of the newest message
	Words  string    `json:"words"`  // for [Filter.Error], to select the group
	Count  int       `json:"count"`  // messages in the sample
	Newest time.Time `json:"newest"` // when the newest message was deferred
	Types  []string  `json:"types"`  // types of messages, at most a few
	Feeds  []string  `json:"feeds"`
}

// GroupErrors groups a sample by error, most frequent first, and returns at most limit groups. It
// is for implementations of [DeadLetters].
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

// aFew is the maximum number of types and feeds that a group lists.
const aFew = 5

func note(names []string, name string) []string {
	if len(names) < aFew && !slices.Contains(names, name) {
		names = append(names, name)
	}
	return names
}

// errorWords returns the words of an error, without words that contain digits, such as numbers and
// IDs, because they differ between messages.
func errorWords(text string) string {
	var words []string
	for field := range strings.FieldsSeq(text) { // drop an ID as a whole, including its parts without digits
		if !strings.ContainsAny(field, "0123456789") {
			words = append(words, split(field)...)
		}
	}
	return strings.Join(words[:min(len(words), 30)], " ")
}
