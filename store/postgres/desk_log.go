package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// Entry is a message of the log, as one feed has come with it.
type Entry struct {
	postrider.Message
	Feed        string
	Seq         int64
	Shard       int
	Status      postrider.Status
	Attempts    int
	EnqueuedAt  time.Time
	AvailableAt time.Time
	LastError   string
}

// Messages returns up to limit messages of the log that match, newest first; those before a sequence number, if it is not 0.
func (d *Desk) Messages(ctx context.Context, feed string, filter desk.Filter, before int64, limit int) ([]Entry, error) {
	w := logWhere(&filter)
	if before > 0 {
		w.add("d.seq < %s", before)
	}
	feedArg := w.arg(feed)
	statuses := make([]string, len(filter.Statuses))
	for i, s := range filter.Statuses {
		statuses[i] = string(s)
	}
	// Every shard brings its newest: the index has them in order.
	inner := w.String()
	if inner == "" {
		inner = " WHERE true"
	}
	sql := `SELECT d.seq, d.shard, d.created_at, d.id, d.type, d.aggregate_type, d.aggregate_id, d.key, d.topic, d.routing_key, d.tenant_id,
		  d.content_type, d.schema_version, d.schema_id, d.dedup_key, d.correlation_id, d.causation_id, coalesce(d.occurred_at, d.created_at),
		  d.deliver_after, coalesce(d.priority, 0), d.headers, d.payload, d.now, coalesce(d.attempts, 0),
		  nullif(d.available_at, 'infinity'), d.last_error
		FROM @schema@.cursors c CROSS JOIN LATERAL (
		  SELECT * FROM (
		    SELECT d.*, a.attempts, a.available_at, a.last_error, coalesce(a.status,
		      CASE WHEN @schema@.settled(d.xid, d.seq, c.s1, c.s2, c.last) THEN 'published' ELSE 'pending' END) AS now
		    FROM @schema@.messages d LEFT JOIN @schema@.deferred a ON a.feed = c.feed AND a.seq = d.seq` + inner + `
		      AND d.shard = c.base AND @schema@.covers(c.tenant, c.others, d.tenant_id)) d
		  WHERE ` + w.arg(len(statuses)) + ` = 0 OR d.now = ANY (` + w.arg(statuses) + `)
		  ORDER BY d.seq DESC LIMIT ` + w.arg(limit) + `) d
		WHERE c.feed = ` + feedArg + ` ORDER BY d.seq DESC LIMIT ` + w.arg(limit)
	rows, err := d.query(ctx, sql, w.args...)
	if err != nil {
		return nil, fmt.Errorf("postgres: messages: %w", err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Entry, error) {
		var r deferredRow
		var status string
		err := row.Scan(&r.seq, &r.shard, &r.createdAt, &r.id, &r.typ, &r.aggregateType, &r.aggregateID, &r.key, &r.topic, &r.routingKey,
			&r.tenant, &r.contentType, &r.version, &r.schemaID, &r.dedup, &r.correlation, &r.causationKey, &r.occurredAt,
			&r.deliverAfter, &r.priority, &r.headers, &r.payload, &status, &r.attempts, &r.availableAt, &r.lastError)
		m := r.deferred()
		return Entry{m.Message, feed, m.Seq, m.Shard, postrider.Status(status), m.Attempts, m.EnqueuedAt, m.AvailableAt, m.LastError}, err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: messages: %w", explain(err))
	}
	return entries, nil
}
