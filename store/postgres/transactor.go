package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/retrying"
)

// TransactorConfig is how transactions are run.
type TransactorConfig struct {
	Config
	// Isolation is sql.LevelReadCommitted, sql.LevelRepeatableRead or sql.LevelSerializable. Defaults to LevelReadCommitted.
	Isolation sql.IsolationLevel
	// MaxAttempts is how often a function is run, all in all, when its transactions fail for a reason that a new one may not
	// meet: a serialization failure, a deadlock, a connection that was lost before anything was committed. Defaults to 5.
	MaxAttempts int
	// BackoffMin is the pause before the second attempt. It doubles with each further one, and up to half of it is added at
	// random. Defaults to 10 ms.
	BackoffMin time.Duration
	// BackoffMax is the longest pause between two attempts, before the random part. Defaults to 1 s.
	BackoffMax time.Duration
	// Patience is how long the server is asked what has become of a COMMIT that was not answered, also if the context of the
	// caller has ended. Defaults to 30 s.
	Patience time.Duration
	// LeaveUncertain saves one round trip for each transaction: a COMMIT that is not answered is then always
	// [postrider.ErrUncertain]. Defaults to false.
	LeaveUncertain bool
}

func (c TransactorConfig) withDefaults() (TransactorConfig, error) {
	var wrong error
	c.Config, wrong = c.Config.withDefaults()
	plan, err := retrying.Plan{
		Isolation: c.Isolation, MaxAttempts: c.MaxAttempts, BackoffMin: c.BackoffMin, BackoffMax: c.BackoffMax, Patience: c.Patience,
	}.WithDefaults("postgres")
	c.Isolation, c.MaxAttempts, c.BackoffMin, c.BackoffMax, c.Patience = plan.Isolation, plan.MaxAttempts, plan.BackoffMin, plan.BackoffMax, plan.Patience
	return c, errors.Join(wrong, err)
}

// Transactor runs functions in pgx transactions. It is safe for concurrent use.
//
// It asks for the transaction's ID before each COMMIT, so that it can find out on another connection what has become of a COMMIT
// that is not answered. For its proof that the server has not crashed meanwhile it uses the schema, if that is there and may be
// read; otherwise it needs another connection of the same user that has been open since before the COMMIT, such as those of a pool.
type Transactor struct{ transactor[pgx.Tx] }

// SQLTransactor runs functions in database/sql transactions. It does what [Transactor] does.
type SQLTransactor struct{ transactor[*sql.Tx] }

var (
	_ postrider.Transactor[pgx.Tx]  = (*Transactor)(nil)
	_ postrider.Transactor[*sql.Tx] = (*SQLTransactor)(nil)
)

// NewTransactor returns a transactor for pgx. Nothing is asked of the database until it is used.
func NewTransactor(pool *pgxpool.Pool, cfg TransactorConfig) (*Transactor, error) {
	if pool == nil {
		return nil, errors.New("postgres: pool is nil")
	}
	cfg, err := cfg.withDefaults()
	return &Transactor{transactor[pgx.Tx]{cfg: cfg, db: overPgx(pool)}}, err
}

// NewSQLTransactor returns a transactor for database/sql.
func NewSQLTransactor(db *sql.DB, cfg TransactorConfig) (*SQLTransactor, error) {
	if db == nil {
		return nil, errors.New("postgres: db is nil")
	}
	cfg, err := cfg.withDefaults()
	return &SQLTransactor{transactor[*sql.Tx]{cfg: cfg, db: overSQL(db)}}, err
}

// Do implements [postrider.Transactor]. A COMMIT that is under way when ctx ends is given a second to be answered.
func (t *Transactor) Do(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) error) error {
	return t.do(ctx, f)
}

// Do implements [postrider.Transactor], as [Transactor.Do] does.
func (t *SQLTransactor) Do(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return t.do(ctx, f)
}

type transactor[Tx any] struct {
	cfg       TransactorConfig
	db        database[Tx]
	questions atomic.Pointer[questions] // nil: look first what the server offers
}

const (
	// commitGrace is how long a COMMIT may go on when the context of the caller has ended. Breaking its connection would make
	// a doubt of what is nearly always a matter of milliseconds.
	commitGrace     = time.Second
	rollbackTimeout = 5 * time.Second
)

func (t *transactor[Tx]) do(ctx context.Context, f func(context.Context, Tx) error) error {
	for attempt := 1; ; attempt++ {
		again, err := t.run(ctx, f)
		if !again {
			return err
		}
		if attempt >= t.cfg.MaxAttempts {
			return fmt.Errorf("postgres: given up after %d attempts: %w", attempt, err)
		}
		if !retrying.Pause(ctx, t.cfg.BackoffMin, t.cfg.BackoffMax, attempt) {
			return fmt.Errorf("postgres: %w after %d attempts: %w", ctx.Err(), attempt, err)
		}
	}
}

// run is one attempt. It reports again only if it is certain that nothing was committed.
func (t *transactor[Tx]) run(ctx context.Context, f func(context.Context, Tx) error) (again bool, err error) {
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
	tx, err := t.db.beginAt(life, t.cfg.Isolation)
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
	case mark.xid == "" && t.cfg.Isolation == sql.LevelSerializable:
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
func (t *transactor[Tx]) early(ctx context.Context, when string, err error) (again bool, _ error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("postgres: %s: %w", when, ctx.Err())
	}
	t.questions.Store(nil) // the server, or its schema, may be another
	return yielded(err) || lost(err), fmt.Errorf("postgres: %s: %w", when, explain(err))
}
