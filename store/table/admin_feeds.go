package table

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// countPending is where counting of what is not delivered ends.
const countPending = 1_000_000

// ListFeeds implements [admin.Feeds].
func (d *Admin) ListFeeds(ctx context.Context) (names []admin.Feed, err error) {
	err = d.look(ctx, func(tx *sql.Tx) error {
		all, err := d.feeds(ctx, tx)
		for _, f := range all {
			if f.name == "" {
				continue
			}
			var feed admin.Feed
			if feed, err = d.describeFeed(ctx, tx, f); err != nil {
				return err
			}
			names = append(names, feed)
		}
		return err
	})
	return names, d.failed("feeds", err)
}

func (d *Admin) describeFeed(ctx context.Context, q sqltext.Querier, f *served) (admin.Feed, error) {
	feed := admin.Feed{Name: f.name, Created: f.created, Paused: f.paused, Settled: f.settled, Destination: f.destination, Shards: f.t.shards}
	members, err := d.members(ctx, q, f)
	if err != nil {
		return feed, err
	}
	feed.Members = len(members)
	shards, err := d.pending(ctx, q, f, countPending)
	if err != nil {
		return feed, err
	}
	for _, l := range shards {
		feed.Pending += l.n
		feed.Oldest = earlier(feed.Oldest, l.oldest)
	}
	if feed.Canary, err = d.canary(ctx, q, f, shards); err != nil {
		return feed, err
	}
	return feed, d.summarise(ctx, q, &feed)
}

// summarise adds what is deferred.
func (d *Admin) summarise(ctx context.Context, q sqltext.Querier, f *admin.Feed) error {
	err := d.cfg.stmt("SELECT status, count(*), ", d.cfg.Dialect.Micros("min(available_at)"), " FROM {deferred} WHERE feed = ").Word(f.Name).
		SQL(" GROUP BY status").Each(ctx, q, func(scan func(...any) error) error {
		var status feeds.Status
		var n int
		var next sql.NullInt64
		err := scan(&status, &n, &next)
		switch status {
		case feeds.StatusDead:
			f.Dead = n
		case feeds.StatusParked:
			f.Parked = n
		default:
			f.Deferred += n
		}
		f.NextRetry = earlier(f.NextRetry, sqltext.Moment(next))
		return err
	})
	if err != nil {
		return err
	}
	return d.cfg.stmt("SELECT count(DISTINCT order_key) FROM {deferred} WHERE blocking = 1 AND order_key <> '' AND feed = ").Word(f.Name).
		Row(ctx, q).Scan(&f.Blocked)
}

// AddFeed implements [admin.Feeds]. A feed without a filter has the table to itself, and what waits there can only be delivered: there
// is no place behind it where a feed could begin.
func (d *Admin) AddFeed(ctx context.Context, by admin.By, name string, oldest bool) error {
	err := sqltext.Transact(ctx, d.db, func(tx *sql.Tx) error {
		all, err := d.feeds(ctx, tx)
		if err != nil {
			return err
		}
		f := all[0]
		if i := slices.IndexFunc(all, func(f *served) bool { return f.name == name }); i >= 0 {
			f = all[i]
		}
		switch {
		case f.name == name:
			return &admin.RefusedError{Reason: fmt.Sprintf("the feed %s exists", name), Remedy: "to send its messages again, rewind it"}
		case f.name != "":
			return &admin.RefusedError{
				Reason: fmt.Sprintf("the feed %s serves table %s already, and a row goes to one feed", f.name, f.t.label),
				Remedy: "use that feed, or remove it first",
			}
		}
		if !oldest {
			shards, err := d.pending(ctx, tx, f, 1)
			if err != nil {
				return err
			}
			if len(shards) > 0 {
				return &admin.RefusedError{
					Reason: fmt.Sprintf("messages wait in table %s, and a feed cannot leave them out", f.t.label),
					Remedy: "add it with the oldest, or mark these rows as delivered first",
				}
			}
		}
		if _, err := (&feedStore{db: d.db, cfg: d.cfg}).enrol(ctx, tx, f.t, name); err != nil {
			return err
		}
		return (&feedStore{db: d.db, cfg: d.cfg}).noteFeed(ctx, tx, by, f.t, name, "")
	})
	return d.failed("feed add", err)
}

// RemoveFeed implements [admin.Feeds]. What was deferred waits in the table again.
func (d *Admin) RemoveFeed(ctx context.Context, by admin.By, name string) error {
	err := sqltext.Transact(ctx, d.db, func(tx *sql.Tx) error {
		f, err := d.named(ctx, tx, name)
		if err != nil {
			return err
		}
		if err := d.lockLeases(ctx, tx, name, f.shards()); err != nil {
			return err
		}
		members, err := d.members(ctx, tx, f)
		if err != nil {
			return err
		}
		if len(members) > 0 {
			return &admin.RefusedError{Reason: fmt.Sprintf("relays serve the feed %s", name), Remedy: "stop them first"}
		}
		before, n, err := d.waitAgain(ctx, tx, f)
		if err != nil {
			return err
		}
		for _, table := range []string{"{deferred}", "{starts}", "{problems}", "{members}", "{leases}", "{feeds}"} {
			if _, err := d.cfg.stmt("DELETE FROM ", table, " WHERE feed = ").Word(name).Exec(ctx, tx); err != nil {
				return err
			}
		}
		return d.cfg.own().Note(ctx, tx, by, admin.Entry{Action: "feed rm", Feed: name, Count: n, Before: before})
	})
	return d.failed("feed rm", err)
}

// waitAgain makes all that is deferred wait in the table again, and returns how much of each status that is.
func (d *Admin) waitAgain(ctx context.Context, tx *sql.Tx, f *served) (before map[string]any, n int, err error) {
	before = make(map[string]any)
	for {
		counts, part := make(map[string]int), []string(nil)
		err := d.cfg.stmt("SELECT row_id, status FROM {deferred} WHERE feed = ").Word(f.name).SQL(" ORDER BY row_id LIMIT ").Number(chunk).
			Each(ctx, tx, func(scan func(...any) error) error {
				var rowID, status string
				err := scan(&rowID, &status)
				part = append(part, rowID)
				counts[status]++
				return err
			})
		if err != nil || len(part) == 0 {
			return before, n, err
		}
		if set := f.t.waitsAgain(); set != "" {
			if _, err := d.cfg.stmt("UPDATE ", f.t.byID, " SET ", set, " WHERE ").Add(idIn(f.t, part)).Exec(ctx, tx); err != nil {
				return nil, 0, err
			}
		}
		if err := d.cfg.forget(ctx, tx, f.name, part); err != nil {
			return nil, 0, err
		}
		for status, k := range counts {
			m, _ := before[status].(int)
			before[status], n = m+k, n+k
		}
	}
}

// PauseFeed implements [admin.Feeds].
func (d *Admin) PauseFeed(ctx context.Context, by admin.By, name string, paused bool) error {
	action, number := "feed resume", int64(0)
	if paused {
		action, number = "feed pause", 1
	}
	err := sqltext.Transact(ctx, d.db, func(tx *sql.Tx) error {
		f, err := d.named(ctx, tx, name)
		if err != nil {
			return err
		}
		if _, err := d.cfg.stmt("UPDATE {feeds} SET paused = ").Number(number).SQL(" WHERE feed = ").Word(name).Exec(ctx, tx); err != nil {
			return err
		}
		return d.cfg.own().Note(ctx, tx, by, admin.Entry{
			Action: action, Feed: name, Before: map[string]any{"paused": f.paused}, After: map[string]any{"paused": paused},
		})
	})
	return d.failed(action, err)
}
