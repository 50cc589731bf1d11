package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// Groups implements [desk.Letters].
func (d *Desk) Groups(ctx context.Context, filter desk.Filter, sample, limit int) (desk.Groups, error) {
	anyFeed := filter.Feed == "" && filter.Error == ""
	w := deferredWhere(&filter)
	newestOf := "SELECT d.seq, d.feed, d.type, coalesce(d.last_error, ''), d.deferred_at FROM @schema@.deferred d"
	end := " ORDER BY d.seq DESC LIMIT " + w.arg(sample+1)
	sql := newestOf + w.String() + end
	if anyFeed { // every feed brings its newest: the indexes have them in order
		w.add("d.feed = f.name")
		sql = `SELECT d.* FROM (SELECT name FROM @schema@.feeds UNION ALL SELECT 'inbox/' || name FROM @schema@.consumers) f
			CROSS JOIN LATERAL (` + newestOf + w.String() + end + ") d" + end
	}
	newest, err := lookUp(ctx, d, sql, w.args, func(row pgx.CollectableRow) (postrider.Deferred, error) {
		var one postrider.Deferred
		err := row.Scan(&one.Seq, &one.Feed, &one.Type, &one.LastError, &one.DeferredAt)
		one.DeferredAt = one.DeferredAt.UTC()
		return one, err
	})
	if err != nil {
		return desk.Groups{}, fmt.Errorf("postgres: groups: %w", err)
	}
	complete := len(newest) <= sample
	newest = newest[:min(len(newest), sample)]
	return desk.Groups{Sampled: len(newest), All: complete, Groups: desk.GroupErrors(newest, limit)}, nil
}
