package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// deferredStatuses are the statuses of deferred messages.
var deferredStatuses = []feeds.Status{
	feeds.StatusScheduled, feeds.StatusRetry, feeds.StatusHeld, feeds.StatusWaiting, feeds.StatusDead, feeds.StatusParked,
}

// Count implements [admin.DeadLetters].
func (d *Admin) Count(ctx context.Context, filter admin.Filter, limit int) (map[feeds.Status]int, error) {
	counts := make(map[feeds.Status]int)
	if limit == 0 {
		w := deferredWhere(&filter)
		rows, err := d.query(ctx, "SELECT d.status, count(*) FROM @schema@.deferred d"+w.String()+" GROUP BY 1", w.args...)
		if err != nil {
			return nil, fmt.Errorf("postgres: count: %w", err)
		}
		var status string
		var n int
		if _, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error {
			counts[feeds.Status(status)] = n
			return nil
		}); err != nil {
			return nil, fmt.Errorf("postgres: count: %w", explain(err))
		}
		return counts, nil
	}
	statuses := filter.Statuses
	if len(statuses) == 0 {
		statuses = deferredStatuses
	}
	for _, status := range statuses {
		filter.Statuses = []feeds.Status{status}
		n, err := d.countUpTo(ctx, filter, limit)
		if err != nil {
			return nil, fmt.Errorf("postgres: count: %w", err)
		}
		if n > 0 {
			counts[status] = n
		}
	}
	return counts, nil
}

// countUpTo counts messages of one status. It scans each feed separately, because the feed is the
// first column of the index.
func (d *Admin) countUpTo(ctx context.Context, filter admin.Filter, limit int) (int, error) {
	byWords := filter.Error != ""
	w := deferredWhere(&filter)
	end := " LIMIT " + w.arg(limit)
	each := "SELECT FROM @schema@.deferred d" + w.String() + end
	if !byWords {
		w.add("d.feed = f.name")
		each = "SELECT FROM " + feedNames + " f CROSS JOIN LATERAL (SELECT FROM @schema@.deferred d" + w.String() + end + ") d" + end
	}
	found, err := lookUp(ctx, d, "SELECT count(*) FROM ("+each+") d", w.args, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// feedNames selects the feeds for which messages are deferred: those of relays, and those of
// consumers.
const feedNames = "(SELECT name FROM @schema@.feeds UNION ALL SELECT 'inbox/' || name FROM @schema@.consumers)"
