package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// runner runs functions in transactions of MySQL or MariaDB. It is safe for concurrent use.
//
// Each transaction writes a mark into a table of Postrider's, so that another connection can find out what has become of a COMMIT
// that is not answered: it waits for the end of the transaction and looks. The table has a row for each transaction that a program
// has open at the same time, and stays that small.
type runner struct {
	cfg   Config
	db    *sql.DB
	marks *marks // nil: doubts are left
}

var _ postrider.Transactor[*sql.Tx] = (*runner)(nil)

// Do implements [postrider.Transactor]. A COMMIT that is under way when ctx ends is given a second to be answered.
func (t *runner) Do(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	policy := t.cfg.Transactor.Retry
	for attempt := 1; ; attempt++ {
		again, err := t.run(ctx, f)
		if !again {
			return err
		}
		if policy.Attempts > 0 && attempt >= policy.Attempts {
			return fmt.Errorf("mysql: given up after %d attempts: %w", attempt, err)
		}
		if !retrying.Pause(ctx, policy, attempt) {
			return fmt.Errorf("mysql: %w after %d attempts: %w", ctx.Err(), attempt, err)
		}
	}
}

// run is one attempt. It reports again only if it is certain that nothing was committed.
func (t *runner) run(ctx context.Context, f func(context.Context, *sql.Tx) error) (again bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	inside, end := postrider.ForTransaction(ctx)
	defer end(false)
	// The life of the transaction ends with ctx until COMMIT is sent.
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	detach := context.AfterFunc(ctx, kill)
	defer detach()

	tx, err := t.db.BeginTx(life, &sql.TxOptions{Isolation: t.cfg.Transactor.Isolation})
	if err != nil {
		return early(ctx, "begin", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	m, err := t.marks.set(life, tx)
	if err != nil {
		return early(ctx, "mark", err)
	}
	defer m.free()
	if err := f(inside, tx); err != nil {
		return yielded(err) && ctx.Err() == nil, err
	}
	if err := m.confirm(life, tx); err != nil {
		return early(ctx, "before commit", err)
	}
	if !detach() {
		return false, ctx.Err()
	}
	err = commit(ctx, tx)
	switch {
	case err == nil:
	case yielded(err), errors.Is(err, sql.ErrTxDone):
		return yielded(err), fmt.Errorf("mysql: commit: %w", err)
	case m == nil:
		return false, fmt.Errorf("mysql: %w: %w", postrider.ErrUncertain, err)
	default:
		committed, doubt := m.resolve(ctx, t.cfg.Transactor.ResolveTimeout)
		if doubt != nil {
			return false, fmt.Errorf("mysql: %w: %w; COMMIT: %w", postrider.ErrUncertain, doubt, err)
		}
		if !committed {
			return ctx.Err() == nil, fmt.Errorf("mysql: commit: %w", err)
		}
	}
	end(true)
	return false, nil
}

// commitGrace is how long a COMMIT may go on when the context of the caller has ended. It is nearly always a matter of
// milliseconds.
const commitGrace = time.Second

var errNoAnswer = errors.New("it was not answered in time")

// commit waits for the answer, but not for ever: the driver does not end a COMMIT together with a context.
func commit(ctx context.Context, tx *sql.Tx) error {
	done := make(chan error, 1)
	go func() { done <- tx.Commit() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(commitGrace):
		return errNoAnswer
	}
}

// early judges a failure before COMMIT was sent: nothing was committed, whatever has happened.
func early(ctx context.Context, when string, err error) (again bool, _ error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("mysql: %s: %w", when, ctx.Err())
	}
	return yielded(err) || isLost(err), fmt.Errorf("mysql: %s: %w", when, sqltext.Explained(err))
}
