package peer

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/test/proof/peers/broker"
)

// hidden is how long a message is invisible to other readers after a read.
const hidden = 30 * time.Second

// visibility is a queue in the style of pgmq: reading hides a message for a while, deleting it
// settles it, and no transaction is open while it is published. The functions are our own, in plain
// SQL.
type visibility struct{ inside }

func (visibility) Name() string { return "visibility-timeout" }

func (visibility) Version(Programs) (string, error) {
	return "test/proof/peers/peer/visibility.go", nil
}

func (visibility) Settings(j Job) []Setting {
	return []Setting{
		{Name: "workers", Value: strconv.Itoa(loopWorkers)},
		{Name: "batch", Value: strconv.Itoa(loopBatch)},
		j.poll("poll", loopPoll),
		{Name: "visibility timeout", Value: hidden.String()},
		{Name: "after publishing", Value: "delete"},
	}
}

func (visibility) Setup(ctx context.Context, db *pgxpool.Pool, _ Job) (Enqueue, error) {
	return insert("SELECT queue_send($1, $2, $3)"), execute(ctx, db,
		`CREATE TABLE queue (
			msg_id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			read_ct     int         NOT NULL DEFAULT 0,
			enqueued_at timestamptz NOT NULL DEFAULT now(),
			vt          timestamptz NOT NULL,
			message_id  uuid        NOT NULL,
			key         text        NOT NULL,
			payload     bytea       NOT NULL
		)`,
		"CREATE INDEX queue_vt ON queue (vt)",
		`CREATE FUNCTION queue_send(message_id uuid, key text, payload bytea) RETURNS bigint LANGUAGE sql AS $$
			INSERT INTO queue (vt, message_id, key, payload) VALUES (clock_timestamp(), message_id, key, payload) RETURNING msg_id
		$$`,
		`CREATE FUNCTION queue_read(hide interval, quantity int) RETURNS SETOF queue LANGUAGE sql AS $$
			WITH free AS (
				SELECT msg_id FROM queue WHERE vt <= clock_timestamp() ORDER BY msg_id LIMIT quantity FOR UPDATE SKIP LOCKED
			)
			UPDATE queue q SET vt = clock_timestamp() + hide, read_ct = read_ct + 1
			FROM free WHERE q.msg_id = free.msg_id RETURNING q.*
		$$`,
		`CREATE FUNCTION queue_delete(ids bigint[]) RETURNS bigint LANGUAGE sql AS $$
			WITH gone AS (DELETE FROM queue WHERE msg_id = ANY (ids) RETURNING 1) SELECT count(*) FROM gone
		$$`)
}

func (visibility) run(ctx context.Context, db *pgxpool.Pool, j Job) error {
	to, err := broker.Open(ctx, j.Broker, j.Address)
	if err != nil {
		return err
	}
	defer to.Close()
	return work(ctx, loopWorkers, j.interval(loopPoll), func(ctx context.Context) (int, error) {
		rows, err := db.Query(ctx, "SELECT msg_id, message_id::text, key, payload FROM queue_read($1, $2) ORDER BY msg_id", hidden, loopBatch)
		if err != nil {
			return 0, err
		}
		ids, msgs, err := claimed(rows)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		if err := to.Send(ctx, j.Topic, msgs...); err != nil {
			return 0, err
		}
		_, err = db.Exec(ctx, "SELECT queue_delete($1)", ids)
		return len(ids), err
	})
}
