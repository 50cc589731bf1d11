package classic

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// countPending is where counting of what is not delivered ends.
const countPending = 1_000_000

// Feeds implements [desk.Feeds].
func (d *Desk) Feeds(ctx context.Context) (feeds []desk.Feed, err error) {
	err = d.look(ctx, func(tx *sql.Tx) error {
		f, err := d.served(ctx, tx)
		if err != nil || f.name == "" {
			return err
		}
		feed := desk.Feed{Name: f.name, Created: f.created, Paused: f.paused, Settled: f.settled, Destination: f.destination, Shards: d.cfg.Shards}
		members, err := d.members(ctx, tx, f)
		if err != nil {
			return err
		}
		feed.Members = len(members)
		lanes, err := d.pending(ctx, tx, f, countPending)
		if err != nil {
			return err
		}
		for _, l := range lanes {
			feed.Pending += l.n
			feed.Oldest = earlier(feed.Oldest, l.oldest)
		}
		if feed.Canary, err = d.canary(ctx, tx, f, lanes); err != nil {
			return err
		}
		if err := d.summarise(ctx, tx, &feed); err != nil {
			return err
		}
		feeds = []desk.Feed{feed}
		return nil
	})
	return feeds, d.failed("feeds", err)
}

// summarise adds what is set aside.
func (d *Desk) summarise(ctx context.Context, q querier, f *desk.Feed) error {
	err := d.cfg.stmt("SELECT status, count(*), ", d.cfg.Dialect.micros("min(available_at)"), " FROM {aside} WHERE feed = ").word(f.Name).
		sql(" GROUP BY status").each(ctx, q, func(scan func(...any) error) error {
		var status postrider.Status
		var n int
		var next sql.NullInt64
		err := scan(&status, &n, &next)
		switch status {
		case postrider.StatusDead:
			f.Dead = n
		case postrider.StatusParked:
			f.Parked = n
		default:
			f.Deferred += n
		}
		f.NextRetry = earlier(f.NextRetry, moment(next))
		return err
	})
	if err != nil {
		return err
	}
	return d.cfg.stmt("SELECT count(DISTINCT order_key) FROM {aside} WHERE blocking = 1 AND order_key <> '' AND feed = ").word(f.Name).
		row(ctx, q).Scan(&f.Blocked)
}

// AddFeed implements [desk.Feeds]. A table serves one feed, and what waits there can only be delivered: there is no place behind it
// where a feed could begin.
func (d *Desk) AddFeed(ctx context.Context, by desk.By, name string, oldest bool) error {
	err := transact(ctx, d.db, func(tx *sql.Tx) error {
		f, err := d.served(ctx, tx)
		if err != nil {
			return err
		}
		switch {
		case f.name == name:
			return &desk.RefusedError{Reason: fmt.Sprintf("the feed %s exists", name), Remedy: "to send its messages again, rewind it"}
		case f.name != "":
			return &desk.RefusedError{
				Reason: fmt.Sprintf("the feed %s serves table %s already, and a table serves one", f.name, f.t.label),
				Remedy: "use that feed, or remove it first",
			}
		}
		if !oldest {
			lanes, err := d.pending(ctx, tx, f, 1)
			if err != nil {
				return err
			}
			if len(lanes) > 0 {
				return &desk.RefusedError{
					Reason: fmt.Sprintf("messages wait in table %s, and a feed cannot leave them out", f.t.label),
					Remedy: "add it with the oldest, or mark these rows as delivered first",
				}
			}
		}
		if _, err := (&Store{db: d.db, cfg: d.cfg}).enrol(ctx, tx, f.t, name); err != nil {
			return err
		}
		return (&Store{db: d.db, cfg: d.cfg}).noteFeed(ctx, tx, by, f.t, name, "")
	})
	return d.failed("feed add", err)
}

// RemoveFeed implements [desk.Feeds]. What was set aside waits in the table again.
func (d *Desk) RemoveFeed(ctx context.Context, by desk.By, name string) error {
	err := transact(ctx, d.db, func(tx *sql.Tx) error {
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
			return &desk.RefusedError{Reason: fmt.Sprintf("relays serve the feed %s", name), Remedy: "stop them first"}
		}
		before, n, err := d.waitAgain(ctx, tx, f)
		if err != nil {
			return err
		}
		for _, table := range []string{"{aside}", "{starts}", "{problems}", "{members}", "{leases}", "{feeds}"} {
			if _, err := d.cfg.stmt("DELETE FROM ", table, " WHERE feed = ").word(name).exec(ctx, tx); err != nil {
				return err
			}
		}
		return d.cfg.note(ctx, tx, by, desk.Entry{Action: "feed rm", Feed: name, Count: n, Before: before})
	})
	return d.failed("feed rm", err)
}

// waitAgain makes all that is set aside wait in the table again, and returns how much of each status that is.
func (d *Desk) waitAgain(ctx context.Context, tx *sql.Tx, f *served) (before map[string]any, n int, err error) {
	before = make(map[string]any)
	for {
		counts, part := make(map[string]int), []string(nil)
		err := d.cfg.stmt("SELECT row_id, status FROM {aside} WHERE feed = ").word(f.name).sql(" ORDER BY row_id LIMIT ").number(chunk).
			each(ctx, tx, func(scan func(...any) error) error {
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
			if _, err := d.cfg.stmt("UPDATE ", f.t.byID, " SET ", set, " WHERE ").rows(f.t, part).exec(ctx, tx); err != nil {
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

// PauseFeed implements [desk.Feeds].
func (d *Desk) PauseFeed(ctx context.Context, by desk.By, name string, paused bool) error {
	action, number := "feed resume", int64(0)
	if paused {
		action, number = "feed pause", 1
	}
	err := transact(ctx, d.db, func(tx *sql.Tx) error {
		f, err := d.named(ctx, tx, name)
		if err != nil {
			return err
		}
		if _, err := d.cfg.stmt("UPDATE {feeds} SET paused = ").number(number).sql(" WHERE feed = ").word(name).exec(ctx, tx); err != nil {
			return err
		}
		return d.cfg.note(ctx, tx, by, desk.Entry{
			Action: action, Feed: name, Before: map[string]any{"paused": f.paused}, After: map[string]any{"paused": paused},
		})
	})
	return d.failed(action, err)
}
