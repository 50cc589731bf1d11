package cli

import (
	"context"
	"errors"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
)

// enqueueRow writes a message into the classic engine's own table, and reports whether its dedup
// key was used before.
func (a *app) enqueueRow(ctx context.Context, m postrider.Message) (repeat bool, err error) {
	cfg, err := a.db.classicStore()
	if err != nil {
		return false, usageError{err}
	}
	db, err := a.db.openTable(ctx, 1)
	if err != nil {
		return false, err
	}
	defer db.Close() //nolint:errcheck // what counts is the commit
	opened, err := table.Open(db, cfg)
	if err != nil {
		return false, usageError{err}
	}
	outbox, err := opened.Outbox()
	if err != nil {
		return false, usageError{err}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	repeats, err := outbox.Offer(ctx, tx, m)
	if err == nil {
		err = tx.Commit()
	}
	if err = a.db.explain(err); errors.Is(err, feeds.ErrSchema) && !errors.As(err, new(hintedError)) {
		err = a.db.hintMigrate(err)
	}
	return len(repeats) > 0, err
}
