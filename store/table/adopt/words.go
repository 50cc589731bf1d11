package adopt

import (
	"slices"
	"strings"

	"github.com/postrider/postrider/store/table/internal/catalog"
)

// meaning is what a word of a status says.
type meaning int

const (
	meansPending meaning = iota + 1
	meansProcessing
	meansPublished
	meansFailed
	meansDead
)

// meanings are words in small letters without anything between them.
var meanings = map[meaning][]string{
	meansPending: {"pending", "new", "waiting", "created", "ready", "queued", "unpublished", "unsent", "unprocessed", "notpublished", "init",
		"initial", "todo", "open"},
	meansProcessing: {"processing", "publishing", "inprogress", "delivering", "sending", "locked", "claimed", "running", "inflight", "dispatching"},
	meansPublished: {"published", "sent", "delivered", "processed", "done", "completed", "complete", "success", "succeeded", "dispatched",
		"finished"},
	meansFailed: {"failed", "error", "errored", "retry", "retrying", "failure"},
	meansDead:   {"dead", "deadletter", "deadlettered", "exhausted", "abandoned", "poison", "poisoned", "permanentlyfailed"},
}

// meaningOf returns what a word says, or 0.
func meaningOf(word string) meaning {
	word = catalog.Plain(word)
	for m, words := range meanings {
		if slices.Contains(words, word) {
			return m
		}
	}
	return 0
}

// wordsOf reads the words of a status: those that the server allows, those that were found, and the default. Complete reports that
// there can be no others.
func wordsOf(t *catalog.Table, c *catalog.Column) (words []string, complete bool) {
	if len(c.Allowed) > 0 {
		return c.Allowed, true
	}
	words = slices.Clone(t.Words[c.Name])
	if quoted := catalog.Literals(c.Default); len(quoted) > 0 && !slices.Contains(words, quoted[0]) {
		words = append(words, quoted[0])
	}
	return words, false
}

// likeThose writes a word as the others are written: in capitals, or with one in front.
func likeThose(word string, others []string) string {
	for _, other := range others {
		switch {
		case len(other) < 2:
		case other == strings.ToUpper(other) && other != strings.ToLower(other):
			return strings.ToUpper(word)
		case other[:1] == strings.ToUpper(other[:1]) && other != strings.ToLower(other):
			return strings.ToUpper(word[:1]) + strings.ToLower(word[1:])
		default:
			return strings.ToLower(word)
		}
	}
	return word
}
