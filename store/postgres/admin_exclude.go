package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// searchAhead is how many sequence numbers after the cursors of a feed Exclude searches first: a
// message that stops a feed is there.
const searchAhead = 200_000

// Exclude implements [admin.Excluder].
func (d *Admin) Exclude(ctx context.Context, by admin.By, act admin.Act, feed string, id postrider.ID) error {
	j := admin.Journey{Message: postrider.Message{ID: id}}
	err := d.look(ctx, func(tx pgx.Tx) error {
		if err := d.findAhead(ctx, tx, feed, &j); err != nil || j.InLog {
			return err
		}
		return d.findInLog(ctx, tx, &j)
	})
	if err != nil {
		return fmt.Errorf("postgres: %s: %w", act, explain(err))
	}
	if !j.InLog {
		return fmt.Errorf("postgres: %s: message %s is not in the log: %w", act, id, admin.ErrNoMessage)
	}
	var refused *string
	err = d.change(ctx, &refused, "SELECT @schema@.exclude($1, $2, $3, $4, $5)", by.Who, by.Why, string(act), feed, j.Seq)
	if err != nil {
		return fmt.Errorf("postgres: %s: %w", act, explain(err))
	}
	switch value(refused) {
	case "":
		return nil
	case "deferred":
		return admin.ErrDeferred
	case "passed":
		return admin.ErrPassed
	case "many":
		return admin.ErrTooManyExcluded
	case "feed":
		return &feeds.NoFeedError{Feed: feed}
	default:
		return fmt.Errorf("postgres: %s: message %s is not in the log: %w", act, id, admin.ErrNoMessage)
	}
}

// findAhead looks for a message just after the cursors of a feed.
func (d *Admin) findAhead(ctx context.Context, tx pgx.Tx, feed string, j *admin.Journey) error {
	s, err := d.newSearch(ctx, tx, feed, &admin.Filter{Statuses: []feeds.Status{feeds.StatusPending}}, 0)
	if err != nil {
		return err
	}
	s.top = min(s.top, s.bottom+searchAhead)
	return s.run(func(from, to int64) (bool, error) {
		seq, err := s.byID(ctx, j.Message.ID, from, to)
		if err != nil || seq == 0 {
			return false, err
		}
		return true, d.readLog(ctx, tx, seq, j)
	})
}
