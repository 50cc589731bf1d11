package api

import (
	"context"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
)

// NewFeed is a request to add a feed.
type NewFeed struct {
	DB
	Body struct {
		Name   string `json:"name" minLength:"1" maxLength:"200"`
		Oldest bool   `json:"oldest,omitempty" doc:"begin with the oldest message that the store still holds"`
		Why    string `json:"why,omitempty" maxLength:"1000"`
	}
}

func (s *Server) addFeed(ctx context.Context, d *database, in *NewFeed) (*Done, error) {
	feeds, err := has(d.Feeds, "feeds")
	if err != nil {
		return nil, err
	}
	if c := inbox.ConsumerOf(in.Body.Name); c != "" {
		return nil, invalid("a feed cannot be called %s: the deferred messages of consumer %s are stored under this name", in.Body.Name, c)
	}
	if err := feeds.AddFeed(ctx, by(ctx, in.Body.Why), in.Body.Name, in.Body.Oldest); err != nil {
		return nil, err
	}
	s.acted(ctx, d, "feed added", in.Body.Why, "feed", in.Body.Name)
	flags := reason(in.Body.Why)
	if in.Body.Oldest {
		flags = append([]string{"--oldest"}, flags...)
	}
	return &Done{Count: 1, Command: d.commandOn("feeds add", in.Body.Name, flags...)}, nil
}

// RemoveFeed is a request to remove a feed.
type RemoveFeed struct {
	FeedName
	Body struct {
		Why    string `json:"why,omitempty" maxLength:"1000" doc:"required, unless it is a dry run"`
		DryRun bool   `json:"dry_run,omitempty"`
	}
}

func (s *Server) removeFeed(ctx context.Context, d *database, in *RemoveFeed) (*Done, error) {
	feeds, err := has(d.Feeds, "feeds")
	if err != nil {
		return nil, err
	}
	f, err := feedNamed(ctx, feeds, in.Name)
	if err != nil {
		return nil, err
	}
	done := &Done{
		Count: f.Pending + f.Deferred + f.Dead + f.Parked, DryRun: in.Body.DryRun,
		Command: d.commandOn("feeds rm", in.Name, reason(in.Body.Why)...),
	}
	if in.Body.DryRun {
		return done, nil
	}
	if err := needWhy(in.Body.Why, "remove a feed"); err != nil {
		return nil, err
	}
	if err := feeds.RemoveFeed(ctx, by(ctx, in.Body.Why), in.Name); err != nil {
		return nil, err
	}
	s.acted(ctx, d, "feed removed", in.Body.Why, "feed", in.Name)
	return done, nil
}

func feedNamed(ctx context.Context, feeds admin.Feeds, name string) (*admin.Feed, error) {
	all, err := feeds.ListFeeds(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	return nil, admin.ErrNoFeed
}

// FeedAct is a request to pause or resume a feed.
type FeedAct struct {
	FeedName
	Body *Reason
}

func (s *Server) pauseFeed(ctx context.Context, d *database, in *FeedAct) (*Done, error) {
	return s.setFeed(ctx, d, in, true, "pause")
}

func (s *Server) resumeFeed(ctx context.Context, d *database, in *FeedAct) (*Done, error) {
	return s.setFeed(ctx, d, in, false, "resume")
}

func (s *Server) setFeed(ctx context.Context, d *database, in *FeedAct, paused bool, verb string) (*Done, error) {
	feeds, err := has(d.Feeds, "feeds")
	if err != nil {
		return nil, err
	}
	if err := feeds.PauseFeed(ctx, by(ctx, in.Body.why()), in.Name, paused); err != nil {
		return nil, err
	}
	s.acted(ctx, d, "feed "+verb+"d", in.Body.why(), "feed", in.Name)
	return &Done{Count: 1, Command: d.commandOn("feeds "+verb, in.Name, reason(in.Body.why())...)}, nil
}

// Rewind is a request to move a feed back to an earlier position.
type Rewind struct {
	FeedName
	Body struct {
		Time   time.Time `json:"time,omitzero" doc:"with the first message that was enqueued then or later"`
		ID     string    `json:"id,omitempty" doc:"with this message"`
		Why    string    `json:"why,omitempty" maxLength:"1000" doc:"required, unless it is a dry run"`
		DryRun bool      `json:"dry_run,omitempty"`
	}
}

func (s *Server) rewindFeed(ctx context.Context, d *database, in *Rewind) (*Done, error) {
	feeds, err := has(d.Feeds, "feeds")
	if err != nil {
		return nil, err
	}
	if in.Body.Time.IsZero() == (in.Body.ID == "") {
		return nil, invalid("want either time or id")
	}
	to, where := admin.Point{Time: in.Body.Time}, []string{"--to", moment(in.Body.Time)}
	if in.Body.ID != "" {
		if to.ID, err = postrider.ParseID(in.Body.ID); err != nil {
			return nil, invalid("%q is not the ID of a message", in.Body.ID)
		}
		where = []string{"--message", in.Body.ID}
	}
	done := &Done{DryRun: in.Body.DryRun, Command: d.commandOn("feeds rewind", in.Name, append(where, reason(in.Body.Why)...)...)}
	if in.Body.DryRun {
		if _, err := feedNamed(ctx, feeds, in.Name); err != nil {
			return nil, err
		}
		done.Count, done.Sample, err = s.wouldRewind(ctx, d, in.Name, to)
		return done, err
	}
	if err := needWhy(in.Body.Why, "rewind a feed"); err != nil {
		return nil, err
	}
	if done.Count, err = feeds.Rewind(ctx, by(ctx, in.Body.Why), in.Name, to); err != nil {
		return nil, err
	}
	s.acted(ctx, d, "feed rewound", in.Body.Why, "feed", in.Name, "count", done.Count)
	return done, nil
}

// wouldRewind returns about how many messages would be sent again, counted up to 10,000, and a
// sample.
func (s *Server) wouldRewind(ctx context.Context, d *database, feed string, to admin.Point) (int, []DeadRow, error) {
	log, err := has(d.Log, "log")
	if err != nil {
		return 0, nil, err
	}
	filter := admin.Filter{Feed: feed, Since: to.Time}
	if !to.ID.IsZero() {
		page, err := log.Messages(ctx, feed, admin.Filter{Feed: feed, ID: to.ID}, 0, 1)
		if err != nil {
			return 0, nil, err
		}
		if len(page.Items) == 0 {
			return 0, nil, absent("the log does not hold message %s", to.ID)
		}
		filter.Since = page.Items[0].EnqueuedAt
	}
	return s.countLog(ctx, log, filter)
}
