package work

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// silent are deferred messages that have waited for a minute although neither they, nor an earlier
// one of their key, nor the name that they are held for has an error.
const silent = `
	SELECT format('%s %s, shard %s, seq %s: %s after %s attempts, name %s', d.feed, d.order_key, d.shard, d.seq, d.status, d.attempts, d.name)
	FROM postrider.deferred d
	WHERE d.deferred_at < clock_timestamp() - interval '1 min' AND d.status NOT IN ('scheduled', 'parked') AND coalesce(d.last_error, '') = ''
	  AND NOT EXISTS (SELECT FROM postrider.deferred h WHERE h.feed = d.feed AND h.shard = d.shard AND h.order_key = d.order_key
	    AND h.seq < d.seq AND h.blocking AND h.last_error <> '')
	  AND NOT EXISTS (SELECT FROM postrider.problems p WHERE p.feed = d.feed AND p.over IS NULL AND p.name IN ('', d.name))
	LIMIT 20`

// behind are the shards of each feed that have had a message to send for 10 s. It looks at the
// oldest messages only: the one that holds up its shard is among them.
const behind = `
	WITH c AS MATERIALIZED (SELECT * FROM postrider.cursors)
	SELECT DISTINCT c.feed, c.shard, md5(concat_ws('/', c.s1::text, c.lo, c.s2::text, c.last, c.hi))
	FROM (SELECT c.feed, min(c.passed) AS passed, min(c.shards) AS shards FROM c GROUP BY c.feed) f
	CROSS JOIN LATERAL (
	  SELECT m.xid, m.seq, m.tenant_id, postrider.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, f.shards) AS shard
	  FROM postrider.messages m
	  WHERE m.seq > f.passed AND m.type <> 'postrider.canary' AND m.created_at < clock_timestamp() - interval '10 s'
	  ORDER BY m.seq LIMIT 5000) m
	JOIN c ON c.feed = f.feed AND c.base = m.shard AND postrider.covers(c.tenant, c.others, m.tenant_id)
	WHERE NOT postrider.settled(m.xid, m.seq, c.s1, c.s2, c.last)`

// LookAtWaiting samples what waits, without dead letters.
func LookAtWaiting(ctx context.Context, db *pgx.Conn) (w record.Waiting, err error) {
	rows, err := db.Query(ctx, silent)
	if err == nil {
		w.Silent, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		return w, err
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// As in postrider.pending: statistics of the log are always old.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, behind)
		if err == nil {
			w.Shards, err = pgx.CollectRows(rows, pgx.RowToStructByPos[record.Shard])
		}
		return err
	})
	return w, err
}
