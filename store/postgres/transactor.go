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

// runner implements [postrider.Transactor]. It asks for the transaction's ID before each COMMIT. If
// a COMMIT is not answered, it uses the ID to find out on another connection whether the
// transaction was committed.
type runner[Tx any] struct {
	cfg       Config
	db        database[Tx]
	questions atomic.Pointer[questions] // nil: ask the server again what it offers
}

const (
	// commitGrace is how long a COMMIT may take after the caller's context has ended. A COMMIT
	// nearly always takes milliseconds; breaking its connection would leave the outcome unknown.
	commitGrace     = time.Second
	rollbackTimeout = 5 * time.Second
)

// Do implements [postrider.Transactor]. A COMMIT that is in progress when ctx ends gets one more
// second.
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

// run makes one attempt. It returns again = true only if it is certain that nothing was committed.
func (t *runner[Tx]) run(ctx context.Context, f func(context.Context, Tx) error) (again bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	inside, end := postrider.ForTransaction(ctx)
	defer end(false)
	// Until COMMIT is sent, the end of ctx ends the transaction.
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
		return true, fmt.Errorf("postgres: commit: %w", err) // nothing was written, but what was read may be inconsistent
	case mark.xid == "": // nothing was written, so there was nothing to commit
	default:
		t.questions.Store(nil) // the failure may have replaced the server
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

// early classifies a failure before COMMIT was sent. Nothing was committed, whatever happened.
func (t *runner[Tx]) early(ctx context.Context, when string, err error) (again bool, _ error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("postgres: %s: %w", when, ctx.Err())
	}
	t.questions.Store(nil) // the server, or its schema, may have been replaced
	return yielded(err) || lost(err), fmt.Errorf("postgres: %s: %w", when, explain(err))
}
