package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// Outbox writes messages in a pgx transaction. It is safe for concurrent use and needs no
// connection of its own.
type Outbox struct{ enqueuer }

// sqlOutbox writes messages in a database/sql transaction.
type sqlOutbox struct{ enqueuer }

var (
	_ postrider.Outbox[pgx.Tx]  = (*Outbox)(nil)
	_ postrider.Outbox[*sql.Tx] = (*sqlOutbox)(nil)
)

// Enqueue implements [postrider.Outbox]. It uses the connection's own query mode: with pgx's
// default, the first Enqueue on a connection also prepares the statement. Behind a pooler that
// allows no prepared statements, configure pgx accordingly.
func (o *Outbox) Enqueue(ctx context.Context, tx pgx.Tx, msgs ...postrider.Message) error {
	_, err := o.offer(ctx, pgxStatements{tx}, msgs)
	return err
}

// Offer implements [postrider.Outbox].
func (o *Outbox) Offer(ctx context.Context, tx pgx.Tx, msgs ...postrider.Message) (repeats []int, err error) {
	return o.offer(ctx, pgxStatements{tx}, msgs)
}

// Queue adds to a batch what Enqueue would send, so that messages travel with the caller's own
// statements. A batch of BEGIN, the changes, the messages and COMMIT takes one round trip. Like
// Enqueue, Queue leaves out a message whose dedup key was enqueued before.
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
func (o *sqlOutbox) Enqueue(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) error {
	_, err := o.offer(ctx, sqlStatements{tx}, msgs)
	return err
}

// Offer implements [postrider.Outbox].
func (o *sqlOutbox) Offer(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) (repeats []int, err error) {
	return o.offer(ctx, sqlStatements{tx}, msgs)
}

type enqueuer struct {
	lock     string // the statement that takes the lock
	lockKeys bool
	shapes   *shapes
}

func newEnqueuer(cfg Config) enqueuer {
	return enqueuer{cfg.in(lockKeys), cfg.LockKeys, &shapes{cfg: cfg, known: make(map[shape]string)}}
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
			delete(fresh, key) // only the first message with the key was written
		}
	}
	return repeats, nil
}
