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
	w := deferredWhere(&filter)
	rows, err := d.query(ctx, "SELECT d.feed, d.type, coalesce(d.last_error, ''), d.deferred_at FROM @schema@.deferred d"+w.String()+
		" ORDER BY d.seq DESC LIMIT "+w.arg(sample+1), w.args...)
	if err != nil {
		return desk.Groups{}, fmt.Errorf("postgres: groups: %w", err)
	}
	newest, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (postrider.Deferred, error) {
		var one postrider.Deferred
		err := row.Scan(&one.Feed, &one.Type, &one.LastError, &one.DeferredAt)
		one.DeferredAt = one.DeferredAt.UTC()
		return one, err
	})
	if err != nil {
		return desk.Groups{}, fmt.Errorf("postgres: groups: %w", explain(err))
	}
	all := len(newest) <= sample
	newest = newest[:min(len(newest), sample)]
	return desk.Groups{Sampled: len(newest), All: all, Groups: desk.GroupErrors(newest, limit)}, nil
}
