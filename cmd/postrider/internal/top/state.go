// Package top draws the screen of "postrider top". It converts snapshots to lines of text, and
// depends on neither terminals nor databases.
package top

import (
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// Snapshot is the state of a store. All times are those of the store's clock.
type Snapshot struct {
	At      time.Time
	Last    int64 // the highest number in the log; 0 if it is empty
	Feeds   []Feed
	Inside  string             // the feed that Blocked and Dead belong to; empty: all feeds
	Blocked []admin.BlockedKey // the oldest
	Dead    []feeds.Deferred   // the oldest of Inside; none if Inside is empty
}

// Feed is a feed, with figures that need further queries.
type Feed struct {
	admin.Feed
	Retrying int
	Problems []feeds.Problem // current problems of its destination
}

// Lag returns the age of the oldest pending message.
func (f *Feed) Lag(at time.Time) time.Duration {
	if f.Oldest.IsZero() {
		return 0
	}
	return max(0, at.Sub(f.Oldest))
}

// Standing returns the state of the feed in a word.
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

// State is the state of the screen.
type State struct {
	Name   string // of the database
	Colour bool
	Held   bool   // refreshing is paused
	Err    string // the error of the last query
	Snapshot

	help     bool
	selected string // a feed
	inside   bool   // the selected feed is open
	scroll   int    // lines, while a feed is open
	past     []Snapshot
}

// remembered is the length of the history.
const remembered = time.Minute

// Add sets the newest snapshot.
func (s *State) Add(n Snapshot) {
	s.Err = ""
	s.Snapshot = n
	// Drop snapshots from the future too: clocks can be set back.
	s.past = slices.DeleteFunc(s.past, func(p Snapshot) bool { return n.At.Sub(p.At) > remembered || !p.At.Before(n.At) })
	s.past = append(s.past, Snapshot{At: n.At, Last: n.Last, Feeds: n.Feeds})
	if s.index() < 0 {
		s.selected, s.inside = "", false
		if len(n.Feeds) > 0 {
			s.selected = n.Feeds[0].Name
		}
	}
}

// Wanted returns the feed whose details the next snapshot should have, or "".
func (s *State) Wanted() string {
	if s.inside {
		return s.selected
	}
	return ""
}

func (s *State) index() int {
	return slices.IndexFunc(s.Feeds, func(f Feed) bool { return f.Name == s.selected })
}

// Press handles a key. It reports whether to quit.
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
