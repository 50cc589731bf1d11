package api

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// LogRow is a message of the log, with its state for one feed.
type LogRow struct {
	ID          string       `json:"id"`
	Seq         int64        `json:"seq"`
	Shard       int          `json:"shard"`
	Feed        string       `json:"feed"`
	Type        string       `json:"type"`
	Key         string       `json:"key,omitempty"`
	Topic       string       `json:"topic,omitempty"`
	Tenant      string       `json:"tenant,omitempty"`
	Status      feeds.Status `json:"status" enum:"pending,published,scheduled,retry,held,waiting,dead,parked"`
	Attempts    int          `json:"attempts"`
	EnqueuedAt  time.Time    `json:"enqueued_at"`
	AvailableAt time.Time    `json:"available_at,omitzero"`
	LastError   string       `json:"last_error,omitempty"`
	Bytes       int          `json:"bytes"`
}

// LogFilter selects messages of the log.
type LogFilter struct {
	DB
	Feed   string         `query:"feed" doc:"by whose way they are seen; may be left out if there is one"`
	Status []feeds.Status `query:"status" enum:"pending,published,scheduled,retry,held,waiting,dead,parked"`
	Type   string         `query:"type"`
	Topic  string         `query:"topic"`
	Key    string         `query:"key"`
	Tenant string         `query:"tenant"`
	ID     string         `query:"id"`
	Since  time.Time      `query:"since"`
	Until  time.Time      `query:"until"`
}

func (f *LogFilter) admin() (admin.Filter, error) {
	filter := Filter{
		Feed: f.Feed, Statuses: f.Status, ID: f.ID, Type: f.Type, Topic: f.Topic, Key: f.Key, Tenant: f.Tenant, Since: f.Since, Until: f.Until,
	}
	return filter.admin()
}

// Messages is a request for a page of the log.
type Messages struct {
	LogFilter
	Paging
}

// searched is how long a request searches the log before it returns an incomplete page. One more
// call of the store may take as long again.
const searched = 50 * time.Millisecond

func (s *Server) messages(ctx context.Context, d *database, in *Messages) (*Page[LogRow], error) {
	log, err := has(d.Log, "log")
	if err != nil {
		return nil, err
	}
	filter, err := in.admin()
	if err != nil {
		return nil, err
	}
	at, err := placeIn("messages", in.Cursor, 1)
	if err != nil {
		return nil, err
	}
	var before int64
	if at != nil {
		before, filter.Feed = at.N, at.Words[0]
	} else if filter.Feed, err = d.theFeed(ctx, filter.Feed); err != nil {
		return nil, err
	}
	page := &Page[LogRow]{Items: []LogRow{}}
	for begun := time.Now(); filter.Feed != ""; {
		found, err := log.Messages(ctx, filter.Feed, filter, before, in.Limit-len(page.Items))
		if err != nil {
			return nil, err
		}
		for i := range found.Items {
			page.Items = append(page.Items, s.rowOf(&found.Items[i]))
		}
		if before = found.Next; before == 0 {
			break
		}
		if len(page.Items) >= in.Limit || time.Since(begun) > searched {
			if len(page.Items) < in.Limit {
				page.Until = found.Until.UTC()
			}
			page.Cursor = place{List: "messages", N: before, Words: []string{filter.Feed}}.cursor()
			break
		}
	}
	return page, nil
}

func (s *Server) rowOf(m *admin.Logged) LogRow {
	return LogRow{
		m.ID.String(), m.Seq, m.Shard, m.Feed, m.Type, m.OrderKey(), m.Topic, m.TenantID, m.Status, m.Attempts, m.EnqueuedAt.UTC(),
		m.AvailableAt.UTC(), s.shown(m.LastError), m.Size,
	}
}

// theFeed returns the named feed. Without a name it returns "default", or else the first feed, or
// "" if there is none.
func (d *database) theFeed(ctx context.Context, name string) (string, error) {
	names, err := d.feedNames(ctx)
	if err == nil && d.watch != nil && (len(names) == 0 || name != "" && !slices.Contains(names, name)) {
		d.watch.Stale() // the feed may be new
		names, err = d.feedNames(ctx)
	}
	switch {
	case err != nil:
		return "", err
	case name != "" && !slices.Contains(names, name):
		return "", admin.ErrNoFeed
	case name != "" || len(names) == 0:
		return name, nil
	case slices.Contains(names, "default"):
		return "default", nil
	}
	return names[0], nil
}

func (d *database) feedNames(ctx context.Context) (names []string, err error) {
	switch {
	case d.watch != nil:
		l, err := d.standing(ctx)
		if err != nil {
			return nil, err
		}
		for i := range l.Standing.Feeds {
			names = append(names, l.Standing.Feeds[i].Name)
		}
	case d.Feeds != nil:
		all, err := d.Feeds.ListFeeds(ctx)
		if err != nil {
			return nil, err
		}
		for i := range all {
			names = append(names, all[i].Name)
		}
	}
	return names, nil
}

// counted is the maximum number of messages that are counted before a confirmation, because the log
// can be long.
const counted = 10_000

// countLog returns how many published messages match, counted up to 10,000, and a sample.
func (s *Server) countLog(ctx context.Context, log admin.Log, filter admin.Filter) (n int, sample []DeadRow, err error) {
	filter.Statuses = []feeds.Status{feeds.StatusPublished}
	for before := int64(0); n < counted; {
		page, err := log.Messages(ctx, filter.Feed, filter, before, 1000)
		if err != nil {
			return 0, nil, err
		}
		n += len(page.Items)
		for i := 0; i < len(page.Items) && len(sample) < sampleSize; i++ {
			m := &page.Items[i]
			sample = append(sample, DeadRow{
				Feed: m.Feed, ID: m.ID.String(), Seq: m.Seq, Shard: m.Shard, Type: m.Type, Key: m.OrderKey(), Topic: m.Topic, Tenant: m.TenantID,
				Status: m.Status, Attempts: m.Attempts, EnqueuedAt: m.EnqueuedAt.UTC(), DeferredAt: m.EnqueuedAt.UTC(),
			})
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	return n, sample, nil
}
