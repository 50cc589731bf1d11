package api

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/admin/console/internal/source"
	"github.com/postrider/postrider/relay"
)

// Feed is the state of a feed.
type Feed struct {
	Name     string              `json:"name"`
	Paused   bool                `json:"paused"`
	Relays   int                 `json:"relays"`
	Pending  admin.Estimate      `json:"pending"`
	Oldest   time.Time           `json:"oldest,omitzero"`
	Settled  time.Time           `json:"settled,omitzero"`
	Canary   time.Time           `json:"canary,omitzero"`
	Deferred admin.DeferredCount `json:"deferred"`
	Rate     live.Value          `json:"rate" doc:"delivered a second, lately"`
	To       string              `json:"to,omitempty" doc:"destinations, when a relay of this process serves it"`
	Problems []Problem           `json:"problems"`
}

// FeedDetail is a feed with its shards, relays and outages.
type FeedDetail struct {
	Feed
	Shards  []Shard  `json:"shards"`
	Members []Relay  `json:"members"`
	Outages []Outage `json:"outages" doc:"what relays have reported: first those that are not over, of each the last seen first"`
}

// Outage is a current or past problem with a destination, or with one name of it.
type Outage struct {
	Name     string    `json:"name" doc:"queue, topic, subject or endpoint; empty for the destination as a whole"`
	Cause    string    `json:"cause" doc:"the last error"`
	Failures int64     `json:"failures" doc:"messages that have failed, each time counted"`
	Since    time.Time `json:"since"`
	Last     time.Time `json:"last" doc:"when it was last seen"`
	Over     time.Time `json:"over,omitzero" doc:"when the name accepted a message again"`
}

// mostOutages is the maximum number of outages in a response.
const mostOutages = 100

// Shard is a shard of a feed, or the part of a shard that one tenant has of its own.
type Shard struct {
	Shard   int            `json:"shard"`
	Base    int            `json:"base"`
	Tenant  string         `json:"tenant,omitempty"`
	Holder  string         `json:"holder,omitempty"`
	Until   time.Time      `json:"until,omitzero"`
	At      time.Time      `json:"at"`
	Last    int64          `json:"last"`
	Pending admin.Estimate `json:"pending"`
	Oldest  time.Time      `json:"oldest,omitzero"`
	Crashes int            `json:"crashes,omitempty"`
}

// Relay is a relay that serves a feed.
type Relay struct {
	ID     string      `json:"id"`
	Name   string      `json:"name"`
	Feed   string      `json:"feed"`
	Since  time.Time   `json:"since"`
	Heard  time.Time   `json:"heard"`
	Until  time.Time   `json:"until"`
	Shards []int       `json:"shards"`
	Here   bool        `json:"here" doc:"a relay of this process"`
	Stats  *RelayStats `json:"stats,omitempty" doc:"only of relays of this process"`
}

// RelayStats are the counters of a relay since its start.
type RelayStats struct {
	Published int64  `json:"published"`
	Failed    int64  `json:"failed"`
	Refused   int64  `json:"refused"`
	Retried   int64  `json:"retried"`
	Deferred  int64  `json:"deferred"`
	Dead      int64  `json:"dead"`
	Reads     int64  `json:"reads"`
	Settles   int64  `json:"settles"`
	Balances  int64  `json:"balances"`
	Fenced    int64  `json:"fenced"`
	Resets    int64  `json:"resets"`
	Blocked   int    `json:"blocked"`
	Shards    int    `json:"shards"`
	Quota     int    `json:"quota"`
	Members   int    `json:"members"`
	Buffered  int    `json:"buffered"`
	Failing   int    `json:"failing"`
	Paused    string `json:"paused,omitempty"`
}

// FeedName is the parameter of requests about one feed.
type FeedName struct {
	DB
	Name string `path:"name"`
}

func (s *Server) feeds(ctx context.Context, d *database, _ *DB) ([]Feed, error) {
	l, err := d.standing(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Feed, len(l.Standing.Feeds))
	for i := range all {
		all[i] = d.feedOf(l, &l.Standing.Feeds[i])
	}
	return all, nil
}

func (s *Server) feed(ctx context.Context, d *database, in *FeedName) (*FeedDetail, error) {
	l, err := d.standing(ctx)
	if err != nil {
		return nil, err
	}
	for i := range l.Standing.Feeds {
		f := &l.Standing.Feeds[i]
		if f.Name != in.Name {
			continue
		}
		detail := &FeedDetail{Feed: d.feedOf(l, f), Shards: make([]Shard, len(f.Shards)), Members: relaysOf(l, f)}
		for n := range f.Shards {
			shard := &f.Shards[n]
			detail.Shards[n] = Shard{
				Shard: shard.Shard, Base: shard.Base, Tenant: shard.Tenant, Holder: shard.Holder, Until: shard.Until.UTC(), At: shard.At.UTC(),
				Last: shard.Last, Pending: shard.Pending, Oldest: shard.Oldest.UTC(), Crashes: shard.Crashes,
			}
		}
		detail.Outages, err = s.outages(ctx, d, f.Name)
		return detail, err
	}
	return nil, admin.ErrNoFeed
}

// outages returns the outages that relays have reported for a feed's destination.
func (s *Server) outages(ctx context.Context, d *database, feed string) ([]Outage, error) {
	all := []Outage{}
	if d.Problems == nil {
		return all, nil
	}
	reported, err := d.Problems.Problems(ctx, feed)
	for _, p := range reported {
		all = append(all, Outage{p.Name, s.shown(p.Cause), p.Failures, p.Since.UTC(), p.Last.UTC(), p.Over.UTC()})
	}
	slices.SortStableFunc(all, func(a, b Outage) int {
		if a.Over.IsZero() == b.Over.IsZero() {
			return 0
		}
		if a.Over.IsZero() {
			return -1
		}
		return 1
	})
	return all[:min(len(all), mostOutages)], err
}

func (s *Server) relays(ctx context.Context, d *database, _ *DB) ([]Relay, error) {
	l, err := d.standing(ctx)
	if err != nil {
		return nil, err
	}
	all := []Relay{}
	for i := range l.Standing.Feeds {
		all = append(all, relaysOf(l, &l.Standing.Feeds[i])...)
	}
	return all, nil
}

func (d *database) feedOf(l *live.Look, f *admin.FeedStanding) Feed {
	out := Feed{
		Name: f.Name, Paused: f.Paused, Relays: len(f.Members), Pending: f.Pending, Oldest: f.Oldest.UTC(), Settled: f.Settled.UTC(),
		Canary: f.Canary.UTC(), Deferred: f.Deferred, Rate: live.Unknown(), Problems: d.problemsOf(l, f),
	}
	if rate, known := l.Rates[f.Name]; known {
		out.Rate = rate
	}
	for i := range l.Relays {
		if r := &l.Relays[i]; r.Feed == f.Name && r.To != "" {
			out.To = r.To
		}
	}
	return out
}

func relaysOf(l *live.Look, f *admin.FeedStanding) []Relay {
	all := make([]Relay, len(f.Members))
	for i := range f.Members {
		m := &f.Members[i]
		all[i] = Relay{
			ID: m.ID, Name: m.Name, Feed: f.Name, Since: m.Since.UTC(), Heard: m.Heard.UTC(), Until: m.Until.UTC(),
			Shards: append([]int{}, m.Shards...),
		}
		here := slices.IndexFunc(l.Relays, func(r source.Relay) bool { return r.Feed == f.Name && r.Name == m.Name })
		if here >= 0 {
			all[i].Here, all[i].Stats = true, statsOf(&l.Relays[here].Stats)
		}
	}
	return all
}

func statsOf(s *relay.Stats) *RelayStats {
	return &RelayStats{
		s.Published, s.Failed, s.Refused, s.Retried, s.Deferred, s.Dead, s.Reads, s.Settles, s.Balances, s.Fenced, s.Resets, s.Blocked,
		s.Shards, s.Quota, s.Members, s.Buffered, s.Failing, s.Paused,
	}
}
