package api

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// DeadRow is a deferred message.
type DeadRow struct {
	Feed       string       `json:"feed"`
	ID         string       `json:"id"`
	Seq        int64        `json:"seq"`
	Shard      int          `json:"shard"`
	Type       string       `json:"type"`
	Key        string       `json:"key,omitempty"`
	Topic      string       `json:"topic,omitempty"`
	Tenant     string       `json:"tenant,omitempty"`
	Status     feeds.Status `json:"status" enum:"pending,published,scheduled,retry,held,waiting,dead,parked"`
	Blocking   bool         `json:"blocking"`
	Attempts   int          `json:"attempts"`
	LastError  string       `json:"last_error,omitempty"`
	EnqueuedAt time.Time    `json:"enqueued_at"`
	DeferredAt time.Time    `json:"deferred_at"`
	TriedAt    time.Time    `json:"tried_at,omitzero"`
}

func (s *Server) deadOf(m *feeds.Deferred) DeadRow {
	return DeadRow{
		m.Feed, m.ID.String(), m.Seq, m.Shard, m.Type, m.OrderKey(), m.Topic, m.TenantID, m.Status, m.Blocking, m.Attempts,
		s.shown(m.LastError), m.EnqueuedAt.UTC(), m.DeferredAt.UTC(), m.TriedAt.UTC(),
	}
}

// DeadFilter selects deferred messages.
type DeadFilter struct {
	LogFilter
	Consumer string `query:"consumer" doc:"deferred messages of this consumer"`
	Error    string `query:"error" doc:"words that the last error contains"`
}

// set returns the filter, with the given statuses if the request has none.
func (f *DeadFilter) set(otherwise ...feeds.Status) (admin.Filter, error) {
	filter, err := f.admin()
	if err != nil {
		return filter, err
	}
	if f.Consumer != "" {
		if f.Feed != "" {
			return filter, invalid("feed and consumer contradict each other: a consumer is no feed")
		}
		filter.Feed = inbox.Feed(f.Consumer)
	}
	filter.Error = f.Error
	if len(filter.Statuses) == 0 {
		filter.Statuses = otherwise
	}
	return filter, nil
}

// Dead is a request for a page of deferred messages.
type Dead struct {
	DeadFilter
	Paging
}

func (s *Server) dead(ctx context.Context, d *database, in *Dead) (*Page[DeadRow], error) {
	deadLetters, err := has(d.DeadLetters, "dead letters")
	if err != nil {
		return nil, err
	}
	filter, err := in.set(feeds.StatusDead, feeds.StatusParked)
	if err != nil {
		return nil, err
	}
	at, err := placeIn("dead", in.Cursor, 1)
	if err != nil {
		return nil, err
	}
	var after *feeds.Deferred
	if at != nil {
		after = &feeds.Deferred{Feed: at.Words[0], Seq: at.N}
	}
	found, err := deadLetters.List(ctx, filter, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	page := &Page[DeadRow]{Items: []DeadRow{}}
	for i := range found[:min(len(found), in.Limit)] {
		page.Items = append(page.Items, s.deadOf(&found[i]))
	}
	if len(found) > in.Limit {
		last := &found[in.Limit-1]
		page.Cursor = place{List: "dead", N: last.Seq, Words: []string{last.Feed}}.cursor()
	}
	return page, nil
}

// countedDead is the maximum count per status for a list. An action counts all messages.
const countedDead = 10_000

func (s *Server) deadCount(ctx context.Context, d *database, in *DeadFilter) (map[string]int, error) {
	deadLetters, err := has(d.DeadLetters, "dead letters")
	if err != nil {
		return nil, err
	}
	filter, err := in.set()
	if err != nil {
		return nil, err
	}
	counts, err := deadLetters.Count(ctx, filter, countedDead)
	if err != nil {
		return nil, err
	}
	return byName(counts), nil
}

// Groups are deferred messages grouped by error.
type Groups struct {
	Sampled int     `json:"sampled"`
	All     bool    `json:"all" doc:"nothing was left out"`
	Groups  []Group `json:"groups"`
}

// Group is the messages with one error.
type Group struct {
	Error  string    `json:"error"`
	Words  string    `json:"words" doc:"for the filter, so that it chooses these"`
	Count  int       `json:"count"`
	Newest time.Time `json:"newest"`
	Types  []string  `json:"types"`
	Feeds  []string  `json:"feeds"`
}

const (
	groupSample = 2000
	groupLimit  = 50
)

func (s *Server) deadGroups(ctx context.Context, d *database, in *DeadFilter) (*Groups, error) {
	deadLetters, err := has(d.DeadLetters, "dead letters")
	if err != nil {
		return nil, err
	}
	filter, err := in.set(feeds.StatusDead, feeds.StatusParked)
	if err != nil {
		return nil, err
	}
	found, err := deadLetters.Groups(ctx, filter, groupSample, groupLimit)
	if err != nil {
		return nil, err
	}
	out := &Groups{found.Sampled, found.All, []Group{}}
	for _, g := range found.Groups {
		out.Groups = append(out.Groups, Group{
			s.shown(g.Error), s.scrubWords(g.Error, g.Words), g.Count, g.Newest.UTC(), append([]string{}, g.Types...), append([]string{}, g.Feeds...),
		})
	}
	return out, nil
}

// scrubWords removes words that are secret: those that do not occur in the scrubbed error.
func (s *Server) scrubWords(text, words string) string {
	shown := make(map[string]bool)
	for _, w := range wordsOf(s.scrub(text)) {
		shown[w] = true
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(words), func(w string) bool { return !shown[w] }), " ")
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
