package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// Messages implements [admin.Log].
func (d *Admin) Messages(ctx context.Context, feed string, filter admin.Filter, before int64, limit int) (admin.LogPage, error) {
	return d.page(ctx, feed, filter, before, limit, !filter.ID.IsZero())
}

// page implements Messages, with or without payloads.
func (d *Admin) page(ctx context.Context, feed string, filter admin.Filter, before int64, limit int, payloads bool) (page admin.LogPage, err error) {
	err = d.look(ctx, func(tx pgx.Tx) error {
		s, err := d.newSearch(ctx, tx, feed, &filter, before)
		if err != nil || s.top <= s.bottom {
			return err
		}
		page, err = d.messages(ctx, s, feed, filter, limit, payloads)
		return err
	})
	if err != nil {
		return admin.LogPage{}, fmt.Errorf("postgres: messages: %w", explain(err))
	}
	return page, nil
}

func (d *Admin) messages(ctx context.Context, s *search, feed string, filter admin.Filter, limit int, payloads bool) (page admin.LogPage, err error) {
	err = s.run(func(from, to int64) (bool, error) {
		found, err := d.logged(ctx, s.tx, feed, filter, from, to, limit-len(page.Items), payloads)
		page.Items = append(page.Items, found...)
		return len(page.Items) >= limit, err
	})
	if n := len(page.Items); n > 0 && n >= limit {
		page.Next, page.Until = page.Items[n-1].Seq, page.Items[n-1].EnqueuedAt
		return page, err
	}
	if s.top > s.bottom && err == nil {
		page.Next = s.top
		page.Until, err = s.time(ctx, s.top)
	}
	return page, err
}

// logged returns the newest messages of the feed that match, with sequence numbers from from
// (inclusive) to to (exclusive).
func (d *Admin) logged(ctx context.Context, tx pgx.Tx, feed string, filter admin.Filter, from, to int64, limit int, payloads bool) ([]admin.Logged, error) {
	w := logWhere(&filter)
	statuses, deferred := make([]string, len(filter.Statuses)), len(filter.Statuses) > 0
	for i, s := range filter.Statuses {
		statuses[i] = string(s)
		deferred = deferred && s != feeds.StatusPending && s != feeds.StatusPublished
	}
	w.add("d.seq >= %s AND d.seq < %s", from, to)
	name := w.arg(feed)
	const columns = `SELECT d.seq, d.created_at, d.id, d.type, d.aggregate_type, d.aggregate_id, d.key, d.topic, d.routing_key,
		  d.tenant_id, d.content_type, d.schema_version, d.schema_id, d.dedup_key, d.correlation_id, d.causation_id, d.occurred_at,
		  d.deliver_after, d.priority, d.headers, d.payload, a.attempts, a.available_at, a.last_error, `
	payload := "NULL::bytea"
	if payloads {
		payload = "d.payload"
	}
	var parts, one string
	// Deferred messages are few, and the index has them in order for each status. OFFSET keeps the
	// planner from starting with the log.
	if deferred {
		parts = "unnest(" + w.arg(statuses) + "::text[]) s(status)"
		one = columns + "a.shard, a.status AS now FROM @schema@.deferred a CROSS JOIN LATERAL (SELECT * FROM @schema@.messages d" + w.String() +
			" AND d.seq = a.seq OFFSET 0) d WHERE a.feed = " + name + " AND a.status = s.status AND a.seq >= " +
			w.arg(from) + " AND a.seq < " + w.arg(to) + " ORDER BY a.seq DESC"
	} else {
		parts = "(SELECT) s"
		const status = "coalesce(a.status, CASE WHEN @schema@.settled(d.xid, d.seq, c.s1, c.s2, c.last) THEN 'published' ELSE 'pending' END)"
		one = columns + `c.base AS shard, ` + status + ` AS now FROM @schema@.messages d
			JOIN cursors c ON c.base = @schema@.shard_of(d.key, d.aggregate_type, d.aggregate_id, d.id, c.shards) AND @schema@.covers(c.tenant, c.others, d.tenant_id)
			LEFT JOIN @schema@.deferred a ON a.feed = c.feed AND a.seq = d.seq` + w.String()
		if len(statuses) > 0 {
			one += " AND " + status + " = ANY (" + w.arg(statuses) + ")"
		}
		one += " ORDER BY d.seq DESC"
	}
	most := w.arg(limit)
	sql := `WITH cursors AS MATERIALIZED (SELECT * FROM @schema@.cursors c WHERE c.feed = ` + name + `)
		SELECT d.seq, d.shard, d.created_at, d.id, d.type, d.aggregate_type, d.aggregate_id, d.key, d.topic, d.routing_key, d.tenant_id,
		  d.content_type, d.schema_version, d.schema_id, d.dedup_key, d.correlation_id, d.causation_id, coalesce(d.occurred_at, d.created_at),
		  d.deliver_after, coalesce(d.priority, 0), d.headers, ` + payload + `, octet_length(d.payload), d.now, coalesce(d.attempts, 0),
		  nullif(d.available_at, 'infinity'), d.last_error
		FROM ` + parts + ` CROSS JOIN LATERAL (` + one + " LIMIT " + most + ") d ORDER BY d.seq DESC LIMIT " + most
	rows, err := tx.Query(ctx, d.cfg.in(sql), append([]any{pgx.QueryExecModeExec}, w.args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (admin.Logged, error) {
		var r deferredRow
		var status string
		var size int
		err := row.Scan(&r.seq, &r.shard, &r.createdAt, &r.id, &r.typ, &r.aggregateType, &r.aggregateID, &r.key, &r.topic, &r.routingKey,
			&r.tenant, &r.contentType, &r.version, &r.schemaID, &r.dedup, &r.correlation, &r.causationKey, &r.occurredAt,
			&r.deliverAfter, &r.priority, &r.headers, &r.payload, &size, &status, &r.attempts, &r.availableAt, &r.lastError)
		m := r.deferred()
		return admin.Logged{
			Message: m.Message, Feed: feed, Seq: m.Seq, Shard: m.Shard, Status: feeds.Status(status), Attempts: m.Attempts,
			EnqueuedAt: m.EnqueuedAt, AvailableAt: m.AvailableAt, LastError: m.LastError, Size: size,
		}, err
	})
}
