package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/feeds"
)

var _ feeds.Splitter = (*feed)(nil)

// Split implements [feeds.Splitter].
func (f *feed) Split(ctx context.Context, mark feeds.Mark, tenant string) (bool, error) {
	if err := f.Release(ctx, []feeds.Mark{mark}); err != nil {
		return false, err
	}
	return f.rearrange(ctx, "split", "SELECT @schema@.split($1, $2, $3)", f.name, mark.Shard, tenant)
}

// Merge implements [feeds.Splitter].
func (f *feed) Merge(ctx context.Context, shard, slice feeds.Mark) (bool, error) {
	if err := f.Release(ctx, []feeds.Mark{shard, slice}); err != nil {
		return false, err
	}
	return f.rearrange(ctx, "merge", "SELECT @schema@.merge($1, $2)", f.name, slice.Shard)
}

func (f *feed) rearrange(ctx context.Context, what, sql string, args ...any) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err = f.pool.QueryRow(ctx, f.cfg.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&done)
	if err != nil {
		return false, fmt.Errorf("postgres: %s: %w", what, explain(err))
	}
	return done, nil
}
