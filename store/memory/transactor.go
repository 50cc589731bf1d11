package memory

import (
	"context"

	"github.com/postrider/postrider"
)

var _ postrider.Transactor[*Tx] = (*DB)(nil)

// Do implements [postrider.Transactor]. Transactions never conflict, so f runs once.
func (s *DB) Do(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inside, end := postrider.ForTransaction(ctx)
	defer end(false)
	tx := s.Begin()
	defer func() { _ = tx.Rollback() }()
	if err := f(inside, tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	end(true)
	return nil
}
