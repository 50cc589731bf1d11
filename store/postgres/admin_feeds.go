package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// countPending is the number at which the count of pending messages stops.
const countPending = 1_000_000

// ListFeeds implements [admin.Feeds].
func (d *Admin) ListFeeds(ctx context.Context) (names []admin.Feed, err error) {
	err = d.look(ctx, func(tx pgx.Tx) error {
		names, err = d.feeds(ctx, tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: feeds: %w", explain(err))
	}
	return names, nil
}

func (d *Admin) feeds(ctx context.Context, tx pgx.Tx) ([]admin.Feed, error) {
	rows, err := tx.Query(ctx, d.cfg.in(`SELECT f.name, f.created_at, f.paused, @schema@.live_members(f.name), p.pending, p.oldest, c.settled,
		  a.deferred, a.dead, a.parked, a.blocked, a.next, @schema@.canary_of(f.name), coalesce(f.destination, ''),
		  f.shards, coalesce((SELECT v.shards FROM @schema@.moves v WHERE v.feed = f.name), 0)
		FROM @schema@.feeds f
		CROSS JOIN LATERAL (SELECT max(c.at) FILTER (WHERE c.member IS NOT NULL) AS settled FROM @schema@.cursors c WHERE c.feed = f.name) c
		CROSS JOIN LATERAL @schema@.pending(f.name, $1) p
		CROSS JOIN LATERAL (
		  SELECT count(*) FILTER (WHERE d.status IN ('scheduled', 'retry', 'held', 'waiting')) AS deferred,
		         count(*) FILTER (WHERE d.status = 'dead') AS dead, count(*) FILTER (WHERE d.status = 'parked') AS parked,
		         count(DISTINCT d.order_key) FILTER (WHERE d.blocking) AS blocked,
		         min(d.available_at) FILTER (WHERE d.available_at < 'infinity') AS next
		  FROM @schema@.deferred d WHERE d.feed = f.name) a
		ORDER BY f.name`), pgx.QueryExecModeExec, countPending)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (admin.Feed, error) {
		var f admin.Feed
		var oldest, settled, next, canary *time.Time
		err := row.Scan(&f.Name, &f.Created, &f.Paused, &f.Members, &f.Pending, &oldest, &settled,
			&f.Deferred, &f.Dead, &f.Parked, &f.Blocked, &next, &canary, &f.Destination, &f.Shards, &f.ShardsTo)
		f.Created, f.Oldest, f.Settled, f.NextRetry = f.Created.UTC(), value(oldest).UTC(), value(settled).UTC(), value(next).UTC()
		f.Canary = value(canary).UTC()
		return f, err
	})
}

// AddFeed implements [admin.Feeds].
func (d *Admin) AddFeed(ctx context.Context, by admin.By, name string, oldest bool) error {
	var floor, low *int64
	if !oldest {
		var err error
		if floor, low, err = findFloor(ctx, d.pool, d.cfg); err != nil {
			return fmt.Errorf("postgres: feed add: %w", explain(err))
		}
	}
	done, err := d.ask(ctx, "feed add", "SELECT @schema@.add_feed($1, $2, $3, $4, $5, $6)", by.Who, by.Why, name, oldest, floor, low)
	if err == nil && !done {
		return &admin.RefusedError{Reason: fmt.Sprintf("the feed %s exists", name), Remedy: "to send its messages again, rewind it"}
	}
	return err
}

// RemoveFeed implements [admin.Feeds].
func (d *Admin) RemoveFeed(ctx context.Context, by admin.By, name string) error {
	done, err := d.ask(ctx, "feed rm", "SELECT @schema@.remove_feed($1, $2, $3)", by.Who, by.Why, name)
	if state(err) == stateServed {
		return &admin.RefusedError{Reason: fmt.Sprintf("relays serve the feed %s", name), Remedy: "stop them first"}
	}
	return noFeed(name, done, err)
}

// PauseFeed implements [admin.Feeds].
func (d *Admin) PauseFeed(ctx context.Context, by admin.By, name string, paused bool) error {
	done, err := d.ask(ctx, "feed pause", "SELECT @schema@.pause_feed($1, $2, $3, $4)", by.Who, by.Why, name, paused)
	return noFeed(name, done, err)
}

// ChangeShards implements [admin.Sharder].
func (d *Admin) ChangeShards(ctx context.Context, by admin.By, name string, shards int) (done bool, err error) {
	found, err := d.ask(ctx, "feed shards", "SELECT @schema@.change_shards($1, $2, $3, $4)", by.Who, by.Why, name, shards)
	if state(err) == stateMoving {
		return false, &admin.RefusedError{Reason: serverMessage(err), Remedy: "wait until that is over"}
	}
	if err := noFeed(name, found, err); err != nil {
		return false, err
	}
	return d.ask(ctx, "feed shards", `SELECT NOT EXISTS (SELECT FROM @schema@.moves v WHERE v.feed = $1)
		FROM (SELECT @schema@.advance_move($1) OFFSET 0) step`, name)
}

// rewindTimeout is how long Rewind retries when relays write to the ledger at the same moment.
const rewindTimeout = 10 * time.Second

// Rewind implements [admin.Feeds].
func (d *Admin) Rewind(ctx context.Context, by admin.By, name string, to admin.Point) (int, error) {
	var id *string
	if !to.ID.IsZero() {
		text := to.ID.String()
		id = &text
	}
	for deadline := time.Now().Add(rewindTimeout); ; {
		var n *int
		err := d.change(ctx, &n, "SELECT @schema@.rewind($1, $2, $3, $4, $5)", by.Who, by.Why, name, nullTime(to.Time), id)
		switch code := state(err); {
		case err == nil && n == nil:
			return 0, &feeds.NoFeedError{Feed: name}
		case err == nil:
			return *n, nil
		case code == stateGone:
			return 0, fmt.Errorf("postgres: rewind: the log does not hold message %s: %w", to.ID, admin.ErrNoMessage)
		case code == "23505" && time.Now().Before(deadline): // unique_violation: a relay wrote to the ledger at the same moment
		default:
			return 0, fmt.Errorf("postgres: rewind: %w", explain(err))
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (d *Admin) ask(ctx context.Context, what, sql string, args ...any) (done bool, err error) {
	err = d.change(ctx, &done, sql, args...)
	if err != nil {
		err = fmt.Errorf("postgres: %s: %w", what, explain(err))
	}
	return done, err
}

func noFeed(name string, done bool, err error) error {
	if err == nil && !done {
		return &feeds.NoFeedError{Feed: name}
	}
	return err
}
