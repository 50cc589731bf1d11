package top

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
)

// Report is a frame as JSON.
type Report struct {
	At      time.Time       `json:"at"`
	Feeds   []FeedReport    `json:"feeds"`
	Blocked []BlockedReport `json:"blocked"`
}

// FeedReport is a row of the table of feeds. Unknown rates are null.
type FeedReport struct {
	admin.Feed
	State     string   `json:"state"`
	Lag       float64  `json:"lag_seconds"`
	Retrying  int      `json:"retrying"`
	Problems  []Outage `json:"problems"`
	Enqueued  *float64 `json:"enqueued_per_second"`
	Delivered *float64 `json:"delivered_per_second"`
}

// Outage is a problem of a feed's destination, or of one name of it.
type Outage struct {
	Name     string    `json:"name"` // empty for the destination as a whole
	Cause    string    `json:"cause"`
	Since    time.Time `json:"since"`
	Failures int64     `json:"failures"`
}

// BlockedReport is a blocked key, and the message that blocks it.
type BlockedReport struct {
	admin.BlockedKey
	ID    postrider.ID `json:"id"`
	Cause string       `json:"cause"`
}

// Report returns the content of a frame without height.
func (s *State) Report() Report {
	r := Report{At: s.At, Feeds: make([]FeedReport, len(s.Feeds)), Blocked: make([]BlockedReport, len(s.Blocked))}
	for i := range s.Feeds {
		f := &s.Feeds[i]
		speed := s.rates(f)
		r.Feeds[i] = FeedReport{f.Feed, f.Standing(), f.Lag(s.At).Seconds(), f.Retrying, outages(f), known(speed.in), known(speed.out)}
	}
	for i := range s.Blocked {
		r.Blocked[i] = BlockedReport{s.Blocked[i], s.Blocked[i].Head.ID, s.Blocked[i].Head.LastError}
	}
	return r
}

func outages(f *Feed) []Outage {
	all := make([]Outage, len(f.Problems))
	for i, p := range f.Problems {
		all[i] = Outage{p.Name, p.Cause, p.Since, p.Failures}
	}
	return all
}

func known(rate float64) *float64 {
	if rate < 0 {
		return nil
	}
	return &rate
}
