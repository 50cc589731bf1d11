package table

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// chunk is how many rows one statement names.
const chunk = 200

// deferredRow is what is known about a message that was deferred; the message itself lies in its table.
type deferredRow struct {
	place
	rowID     string
	key       string
	name      string // that it is held for
	status    feeds.Status
	blocking  bool
	attempts  int
	lastError string

	enqueued, deferred, tried, available time.Time

	unsure time.Duration // how long ago an attempt began that may have delivered it; 0 if there is none
}

// place is where a message stands in its feed.
type place struct {
	shard int
	seq   int64
}

// shardKey is an ordering key, with the shard that it belongs to.
type shardKey struct {
	shard int
	key   string
}

// blocks reports whether later messages of its key wait for this one.
func (r *deferredRow) blocks() bool { return r.blocking && r.key != "" }

// again reports whether the message will be sent by itself; otherwise it is an operator's affair.
func (r *deferredRow) again() bool {
	switch r.status {
	case feeds.StatusScheduled, feeds.StatusRetry, feeds.StatusHeld, feeds.StatusWaiting:
		return true
	default:
		return false
	}
}

// with completes the row with its message.
func (r *deferredRow) with(m postrider.Message, feed string) feeds.Deferred {
	return feeds.Deferred{
		Message: m, Feed: feed, Shard: r.shard, Seq: r.seq, Status: r.status, Name: r.name, Blocking: r.blocking, Attempts: r.attempts,
		LastError: r.lastError, EnqueuedAt: r.enqueued, DeferredAt: r.deferred, TriedAt: r.tried, AvailableAt: r.available, Unsure: r.unsure,
	}
}

// deferredColumns are those of {deferred}, a, in the order in which deferredRows reads them.
func deferredColumns(d sqltext.Dialect) string {
	return "a.row_id, a.shard, a.seq, a.order_key, a.name, a.status, a.blocking, a.attempts, a.last_error, " + d.Micros("a.enqueued_at") + ", " +
		d.Micros("a.deferred_at") + ", " + d.Micros("a.tried_at") + ", " + d.Micros("a.available_at") + ", " +
		d.Micros("{now}") + " - " + d.Micros("a.sent_at")
}

// deferredRows runs a statement that selects deferredColumns.
func deferredRows(ctx context.Context, q sqltext.Querier, s *sqltext.Stmt) ([]deferredRow, error) {
	var rows []deferredRow
	err := s.Each(ctx, q, func(scan func(...any) error) error {
		var r deferredRow
		var key, name, cause sql.NullString
		var enqueued, deferred, tried, available, unsure sql.NullInt64
		err := scan(&r.rowID, &r.shard, &r.seq, &key, &name, &r.status, &r.blocking, &r.attempts, &cause, &enqueued, &deferred, &tried, &available,
			&unsure)
		r.key, r.name, r.lastError = key.String, name.String, cause.String
		r.enqueued, r.deferred, r.tried, r.available = sqltext.Moment(enqueued), sqltext.Moment(deferred), sqltext.Moment(tried), sqltext.Moment(available)
		r.unsure = time.Duration(unsure.Int64) * time.Microsecond
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// heads returns, of each key that is blocked, the first message that blocks it. The shard is no condition, because a key has only
// one, and the index by shard and seq would be tried for the order.
func (c *Config) heads(ctx context.Context, q sqltext.Querier, feed string, keys []shardKey) (map[shardKey]deferredRow, error) {
	found := make(map[shardKey]deferredRow)
	for part := range slices.Chunk(keys, 50) {
		s := c.stmt()
		for i, k := range part {
			if i > 0 {
				s.SQL(" UNION ALL ")
			}
			s.SQL("(SELECT ", deferredColumns(c.Dialect), " FROM {deferred} a WHERE a.feed = ").Word(feed).SQL(" AND a.order_key = ").Word(k.key)
			s.SQL(" AND a.blocking = 1 ORDER BY a.seq LIMIT 1)")
		}
		rows, err := deferredRows(ctx, q, s)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			found[shardKey{r.shard, r.key}] = r
		}
	}
	return found, nil
}

// promote makes the first message of each key go, now that what it waited for is gone. It returns the keys of which there is none:
// they are free. The caller has locked the leases of the shards.
func (t *table) promote(ctx context.Context, tx sqltext.Querier, feed string, keys []shardKey) (free []string, err error) {
	heads, err := t.cfg.heads(ctx, tx, feed, keys)
	if err != nil {
		return nil, err
	}
	var waiting []string
	for _, k := range keys {
		switch head, ok := heads[k]; {
		case !ok:
			free = append(free, k.key)
		case head.status == feeds.StatusWaiting:
			waiting = append(waiting, head.rowID)
		}
	}
	return free, t.again(ctx, tx, feed, waiting)
}

// again has messages that are deferred sent at once.
func (t *table) again(ctx context.Context, tx sqltext.Querier, feed string, rowIDs []string) error {
	return t.changeDeferred(ctx, tx, feed, rowIDs, actChanges[admin.Retry])
}

// changeDeferred changes what stands about rows, and what they say of it themselves.
func (t *table) changeDeferred(ctx context.Context, tx sqltext.Querier, feed string, rowIDs []string, set string) error {
	for part := range slices.Chunk(rowIDs, chunk) {
		if _, err := t.cfg.stmt("UPDATE {deferred} SET ", set, " WHERE feed = ").Word(feed).SQL(" AND ").Words("row_id", part).Exec(ctx, tx); err != nil {
			return err
		}
	}
	return t.mirror(ctx, tx, feed, rowIDs)
}

// forget deletes what stands about rows.
func (c *Config) forget(ctx context.Context, tx sqltext.Querier, feed string, rowIDs []string) error {
	return c.deleteNamed(ctx, tx, "{deferred}", feed, "", rowIDs)
}
