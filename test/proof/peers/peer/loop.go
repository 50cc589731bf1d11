package peer

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/test/proof/peers/broker"
)

const (
	loopWorkers = 4
	loopBatch   = 100
	loopPoll    = 200 * time.Millisecond
)

// loop is the relay that users typically write themselves: claim rows with FOR UPDATE SKIP LOCKED,
// publish them, and mark or delete them in the same transaction.
type loop struct {
	inside
	deletes bool
}

func (l loop) Name() string {
	if l.deletes {
		return "loop-delete"
	}
	return "loop-update"
}

func (loop) Version(Programs) (string, error) { return "test/proof/peers/peer/loop.go", nil }

func (loop) Settings(j Job) []Setting {
	return []Setting{
		{Name: "workers", Value: strconv.Itoa(loopWorkers)},
		{Name: "batch", Value: strconv.Itoa(loopBatch), Default: "50 to 100 is what people take"},
		j.poll("poll", loopPoll),
		{Name: "publishing", Value: "a whole batch is under way at a time"},
	}
}

// Setup creates the usual table. The partial index is the usual advice for the variant that keeps
// its rows.
func (l loop) Setup(ctx context.Context, db *pgxpool.Pool, _ Job) (Enqueue, error) {
	statements := []string{`CREATE TABLE outbox (
		id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		message_id   uuid        NOT NULL,
		key          text        NOT NULL,
		payload      bytea       NOT NULL,
		status       text        NOT NULL DEFAULT 'pending',
		attempts     int         NOT NULL DEFAULT 0,
		created_at   timestamptz NOT NULL DEFAULT now(),
		published_at timestamptz
	)`}
	if !l.deletes {
		statements = append(statements, "CREATE INDEX outbox_pending ON outbox (id) WHERE status = 'pending'")
	}
	return insert("INSERT INTO outbox (message_id, key, payload) VALUES ($1, $2, $3)"), execute(ctx, db, statements...)
}

// insert enqueues with one plain statement per message, many of them in one round trip.
func insert(sql string) Enqueue {
	return func(ctx context.Context, tx pgx.Tx, msgs ...Message) error {
		if len(msgs) == 1 {
			_, err := tx.Exec(ctx, sql, msgs[0].ID, msgs[0].Key, msgs[0].Payload)
			return err
		}
		var batch pgx.Batch
		for _, m := range msgs {
			batch.Queue(sql, m.ID, m.Key, m.Payload)
		}
		return tx.SendBatch(ctx, &batch).Close()
	}
}

func (l loop) run(ctx context.Context, db *pgxpool.Pool, j Job) error {
	to, err := broker.Open(ctx, j.Broker, j.Address)
	if err != nil {
		return err
	}
	defer to.Close()
	claim := "SELECT id, message_id::text, key, payload FROM outbox WHERE status = 'pending' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED"
	settle := "UPDATE outbox SET status = 'published', published_at = now() WHERE id = ANY ($1)"
	if l.deletes {
		claim = "SELECT id, message_id::text, key, payload FROM outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED"
		settle = "DELETE FROM outbox WHERE id = ANY ($1)"
	}
	return work(ctx, loopWorkers, j.interval(loopPoll), func(ctx context.Context) (n int, err error) {
		err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, claim, loopBatch)
			if err != nil {
				return err
			}
			ids, msgs, err := claimed(rows)
			n = len(ids)
			if err != nil || n == 0 {
				return err
			}
			if err := to.Send(ctx, j.Topic, msgs...); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, settle, ids)
			return err
		})
		return n, err
	})
}

// claimed scans rows of row number, message ID, key and payload.
func claimed(rows pgx.Rows) (ids []int64, msgs []broker.Message, err error) {
	var id int64
	var m broker.Message
	_, err = pgx.ForEachRow(rows, []any{&id, &m.ID, &m.Key, &m.Payload}, func() error {
		ids, msgs = append(ids, id), append(msgs, m)
		m.Payload = nil
		return nil
	})
	return ids, msgs, err
}

// work has workers process one batch after the other; a worker that finds less than a full batch
// pauses.
func work(ctx context.Context, workers int, rest time.Duration, step func(context.Context) (int, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for {
				select {
				case <-timer.C:
				case <-ctx.Done():
					return
				}
				n, err := step(ctx)
				if err != nil && ctx.Err() == nil {
					cancel(fmt.Errorf("peer: a worker ended: %w", err))
				}
				if n < loopBatch {
					timer.Reset(rest)
				} else {
					timer.Reset(0)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
