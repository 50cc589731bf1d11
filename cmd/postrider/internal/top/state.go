// Package top draws the screen of "postrider top". It knows neither terminals nor databases: what was seen goes in, lines of
// text come out.
package top

import (
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// Snapshot is what one look at a store has found. All times are those of the store's clock.
type Snapshot struct {
	At      time.Time
	Last    int64 // the highest number in the log; 0 if it holds nothing
	Feeds   []Feed
	Inside  string             // the feed that the rest is about; empty: all feeds
	Blocked []admin.BlockedKey // the oldest
	Dead    []feeds.Deferred   // the oldest of Inside; none without it
}

// Feed is a feed and what the admin API does not count by itself.
type Feed struct {
	admin.Feed
	Retrying int
	Problems []feeds.Problem // of its destination, that are not over
}

// Lag is for how long the oldest message has waited.
func (f *Feed) Lag(at time.Time) time.Duration {
	if f.Oldest.IsZero() {
		return 0
	}
	return max(0, at.Sub(f.Oldest))
}

// Standing is how the feed is doing, in a word.
func (f *Feed) Standing() string {
	switch {
	case f.Paused:
		return "paused"
	case f.Members == 0:
		return "no relay"
	case len(f.Problems) > 0:
		return "failing"
	case f.Blocked > 0:
		return "blocked"
	}
	return "ok"
}

// State is all that the screen shows.
type State struct {
	Name   string // of what is looked at
	Colour bool
	Held   bool   // the screen is not refreshed
	Err    string // why the last look failed
	Snapshot

	help     bool
	selected string // a feed
	inside   bool   // the selected feed
	scroll   int    // lines, inside
	past     []Snapshot
}

// remembered is how far the history goes back.
const remembered = time.Minute

// Add makes a snapshot the newest one.
func (s *State) Add(n Snapshot) {
	s.Err = ""
	s.Snapshot = n
	// Clocks can be set back.
	s.past = slices.DeleteFunc(s.past, func(p Snapshot) bool { return n.At.Sub(p.At) > remembered || !p.At.Before(n.At) })
	s.past = append(s.past, Snapshot{At: n.At, Last: n.Last, Feeds: n.Feeds})
	if s.index() < 0 {
		s.selected, s.inside = "", false
		if len(n.Feeds) > 0 {
			s.selected = n.Feeds[0].Name
		}
	}
}

// Wanted returns the feed that the next look is to be about, or "".
func (s *State) Wanted() string {
	if s.inside {
		return s.selected
	}
	return ""
}

func (s *State) index() int {
	return slices.IndexFunc(s.Feeds, func(f Feed) bool { return f.Name == s.selected })
}

// Press does what a key stands for. It reports whether that is to leave.
func (s *State) Press(k Key) (quit bool) {
	switch k {
	case 'q', Interrupt:
		return true
	case 'p':
		s.Held = !s.Held
	case '?':
		s.help = !s.help
	case Enter:
		s.inside, s.scroll = s.inside || s.selected != "", 0
	case Escape:
		s.inside = false
	case Up, 'k':
		s.move(-1)
	case Down, 'j':
		s.move(1)
	}
	return false
}

func (s *State) move(by int) {
	if s.inside {
		s.scroll = min(max(0, s.scroll+by), max(0, len(s.details())-1))
	} else if len(s.Feeds) > 0 {
		s.selected = s.Feeds[min(max(0, s.index()+by), len(s.Feeds)-1)].Name
	}
}
