package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Filter selects messages. A zero field matches all.
type Filter struct {
	Feed     string         `json:"feed,omitempty"`
	Statuses []feeds.Status `json:"statuses,omitempty"`
	ID       postrider.ID   `json:"id,omitzero"`
	Type     string         `json:"type,omitempty"`
	Topic    string         `json:"topic,omitempty"`
	Key      string         `json:"key,omitempty"` // the ordering key
	Tenant   string         `json:"tenant,omitempty"`
	Since    time.Time      `json:"since,omitzero"`  // enqueued then or later
	Until    time.Time      `json:"until,omitzero"`  // enqueued before then
	Error    string         `json:"error,omitempty"` // words that the last error contains, in any order and case
	Head     bool           `json:"head,omitempty"`  // only messages that block their key and wait for nothing
}

// Matches reports whether the filter selects a message. It ignores Head.
func (f *Filter) Matches(d *feeds.Deferred) bool {
	return (f.Feed == "" || f.Feed == d.Feed) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, d.Status)) &&
		(f.ID.IsZero() || f.ID == d.ID) &&
		(f.Type == "" || f.Type == d.Type) &&
		(f.Topic == "" || f.Topic == d.Topic) &&
		(f.Key == "" || f.Key == d.OrderKey()) &&
		(f.Tenant == "" || f.Tenant == d.TenantID) &&
		(f.Since.IsZero() || !d.EnqueuedAt.Before(f.Since)) &&
		(f.Until.IsZero() || d.EnqueuedAt.Before(f.Until)) &&
		containsWords(d.LastError, f.Error)
}

func containsWords(text, words string) bool {
	have := split(text)
	for _, w := range split(words) {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

func split(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127)
	})
}
