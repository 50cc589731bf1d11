package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// OutboxConfig is how producers write.
type OutboxConfig struct {
	Config
	// LockKeys makes Enqueue lock each message's key until the transaction ends, so that messages of a key are
	// delivered in commit order even if their writers share no other lock. Writers that lock the aggregate's row before
	// they enqueue do not need it. Defaults to false.
	LockKeys bool
}

// Outbox writes messages in a pgx transaction. It is safe for concurrent use and needs no connection of its own.
type Outbox struct{ enqueuer }

// SQLOutbox writes messages in a database/sql transaction, with any PostgreSQL driver.
type SQLOutbox struct{ enqueuer }

var (
	_ postrider.Outbox[pgx.Tx]  = (*Outbox)(nil)
	_ postrider.Outbox[*sql.Tx] = (*SQLOutbox)(nil)
)

// NewOutbox returns an outbox for pgx.
func NewOutbox(cfg OutboxConfig) (*Outbox, error) {
	e, err := newEnqueuer(cfg)
	return &Outbox{e}, err
}

// NewSQLOutbox returns an outbox for database/sql.
func NewSQLOutbox(cfg OutboxConfig) (*SQLOutbox, error) {
	e, err := newEnqueuer(cfg)
	return &SQLOutbox{e}, err
}

// Enqueue implements [postrider.Outbox]. It uses the connection's own query mode: with pgx's default, the first Enqueue on a
// connection also prepares the statement; behind a pooler that allows no prepared statements, configure pgx accordingly.
func (o *Outbox) Enqueue(ctx context.Context, tx pgx.Tx, msgs ...postrider.Message) error {
	_, err := o.offer(ctx, pgxStatements{tx}, msgs)
	return err
}

// Offer implements [postrider.Outbox].
func (o *Outbox) Offer(ctx context.Context, tx pgx.Tx, msgs ...postrider.Message) (repeats []int, err error) {
	return o.offer(ctx, pgxStatements{tx}, msgs)
}

// Queue adds to a batch what Enqueue would send, so that messages travel with the caller's own statements, and with COMMIT:
// a batch of BEGIN, the changes, the messages and COMMIT is one round trip. A message whose dedup key was enqueued before is left
// out, as by Enqueue.
func (o *Outbox) Queue(batch *pgx.Batch, msgs ...postrider.Message) error {
	all, err := o.writing(msgs)
	if err != nil {
		return err
	}
	for _, s := range all {
		batch.Queue(s.sql, s.args...)
	}
	return nil
}

// Enqueue implements [postrider.Outbox].
func (o *SQLOutbox) Enqueue(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) error {
	_, err := o.offer(ctx, sqlStatements{tx}, msgs)
	return err
}

// Offer implements [postrider.Outbox].
func (o *SQLOutbox) Offer(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) (repeats []int, err error) {
	return o.offer(ctx, sqlStatements{tx}, msgs)
}

type enqueuer struct {
	lock     string // the statement
	lockKeys bool
	shapes   *shapes
}

func newEnqueuer(cfg OutboxConfig) (enqueuer, error) {
	c, err := cfg.withDefaults()
	return enqueuer{c.in(lockKeys), cfg.LockKeys, &shapes{cfg: c, known: make(map[shape]string)}}, err
}

func (e *enqueuer) offer(ctx context.Context, tx statements, msgs []postrider.Message) (repeats []int, err error) {
	all, err := e.writing(msgs)
	if err != nil {
		return nil, err
	}
	fresh := make(map[string]bool)
	for _, s := range all {
		if s.returns {
			var key string
			err = tx.rows(ctx, s.sql, s.args, []any{&key}, func() error {
				fresh[key] = true
				return nil
			})
		} else {
			_, err = tx.exec(ctx, s.sql, s.args...)
		}
		if err != nil {
			return nil, fmt.Errorf("postgres: enqueue: %w", explain(err))
		}
	}
	for i := range msgs {
		if key := msgs[i].DedupKey; key != "" {
			if !fresh[key] {
				repeats = append(repeats, i)
			}
			delete(fresh, key) // the first message that has it was written
		}
	}
	return repeats, nil
}
