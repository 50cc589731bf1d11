package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/retrying"
)

// runner asks for the transaction's ID before each COMMIT, so that it can find out on another connection what became of a COMMIT
// that was not answered.
type runner[Tx any] struct {
	cfg       Config
	db        database[Tx]
	questions atomic.Pointer[questions] // nil: look first what the server offers
}

const (
	// commitGrace is how long a COMMIT may go on when the context of the caller has ended. Breaking its connection would make
	// a doubt of what is nearly always a matter of milliseconds.
	commitGrace     = time.Second
	rollbackTimeout = 5 * time.Second
)

// Do implements [postrider.Transactor]. A COMMIT that is under way when ctx ends is given a second to be answered.
func (t *runner[Tx]) Do(ctx context.Context, f func(context.Context, Tx) error) error {
	policy := t.cfg.Transactor.Retry
	for attempt := 1; ; attempt++ {
		again, err := t.run(ctx, f)
		if !again {
			return err
		}
		if policy.Attempts > 0 && attempt >= policy.Attempts {
			return fmt.Errorf("postgres: given up after %d attempts: %w", attempt, err)
		}
		if !retrying.Pause(ctx, policy, attempt) {
			return fmt.Errorf("postgres: %w after %d attempts: %w", ctx.Err(), attempt, err)
		}
	}
}

// run is one attempt. It reports again only if it is certain that nothing was committed.
func (t *runner[Tx]) run(ctx context.Context, f func(context.Context, Tx) error) (again bool, err error) {
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

	asks, err := t.prepare(life)
	if err != nil {
		return t.early(ctx, "prepare", err)
	}
	tx, err := t.db.beginAt(life, t.cfg.Transactor.Isolation)
	if err != nil {
		return t.early(ctx, "begin", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = tx.rollback(ctx)
	}()
	if err := f(inside, tx.tx); err != nil {
		return yielded(err) && ctx.Err() == nil, err
	}
	var mark mark
	if asks != nil {
		if mark, err = asks.ask(life, tx); err != nil {
			return t.early(ctx, "before commit", err)
		}
		if mark.started != asks.started {
			t.questions.Store(nil)
		}
	}
	if !detach() {
		return false, ctx.Err()
	}
	defer context.AfterFunc(ctx, func() { time.AfterFunc(commitGrace, kill) })()
	err = tx.commit(life)
	switch {
	case err == nil:
	case answered(err):
		return yielded(err), fmt.Errorf("postgres: commit: %w", err)
	case asks == nil:
		return false, fmt.Errorf("postgres: %w: %w", postrider.ErrUncertain, err)
	case mark.xid == "" && t.cfg.Transactor.Isolation == sql.LevelSerializable:
		return true, fmt.Errorf("postgres: commit: %w", err) // nothing was written, but what was read may not hold
	case mark.xid == "": // nothing was written: there was nothing to commit
	default:
		t.questions.Store(nil) // whatever it was, it may have changed the server
		committed, doubt := t.resolve(ctx, asks, mark)
		if doubt != nil {
			return false, fmt.Errorf("postgres: %w: transaction %s: %w; COMMIT: %w", postrider.ErrUncertain, mark.xid, doubt, err)
		}
		if !committed {
			return true, fmt.Errorf("postgres: commit: %w", err)
		}
	}
	end(true)
	return false, nil
}

// early judges a failure before COMMIT was sent: nothing was committed, whatever has happened.
func (t *runner[Tx]) early(ctx context.Context, when string, err error) (again bool, _ error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("postgres: %s: %w", when, ctx.Err())
	}
	t.questions.Store(nil) // the server, or its schema, may be another
	return yielded(err) || lost(err), fmt.Errorf("postgres: %s: %w", when, explain(err))
}
