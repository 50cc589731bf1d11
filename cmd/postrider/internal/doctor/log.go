package doctor

import (
	"context"
	"fmt"
	"time"
)

// logChecks examine the log and the ledger.
var logChecks = []check{
	{"partitions", askPartitions},
	{"indexes", askIndexes},
	{"ring", askRing},
	{"dead-rows", askDeadRows},
	{"frozen", askFrozen},
	{"housekeeping", askHousekeeping},
	{"growth", askGrowth},
	{"writers", askWriters},
}

func askPartitions(ctx context.Context, p *target) ([]Finding, error) {
	missing, err := values[int](ctx, p, `SELECT s FROM generate_series(0, @schema@.slot_count() - 1) s
		WHERE NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = to_regclass('@schema@.messages')
		                  AND i.inhrelid = to_regclass('@schema@.messages_' || s)) ORDER BY 1`)
	var found []Finding
	for _, slot := range missing {
		found = append(found, Finding{Severity: Problem, Finding: fmt.Sprintf("the partition messages_%d is missing", slot),
			Why: "When its turn in the ring comes, every business transaction with a message fails.",
			Fix: p.in(fmt.Sprintf("CREATE TABLE @schema@.messages_%d PARTITION OF @schema@.messages FOR VALUES IN (%[1]d) "+
				"WITH (autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_vacuum_insert_threshold = -1); "+
				"ALTER TABLE @schema@.messages_%[1]d REPLICA IDENTITY FULL", slot))})
	}
	return found, err
}

func askIndexes(ctx context.Context, p *target) ([]Finding, error) {
	type index struct {
		Table, Columns, Broken, Fix string
		Unique                      bool
	}
	// For each table that needs an index: the best index on these columns, which may be missing or
	// invalid.
	missing, err := rows[index](ctx, p, `
		SELECT t.oid::regclass::text, w.columns, coalesce(i.name, ''), w.fix, w.uniq
		FROM (VALUES ('messages', 'seq', 'CREATE INDEX messages_seq ON @schema@.messages (seq)', false),
		             ('checkpoints', 'feed, shard, n', 'ALTER TABLE @schema@.checkpoints ADD PRIMARY KEY (feed, shard, n)', true),
		             ('members', 'feed, until', 'CREATE INDEX members_feed_until ON @schema@.members (feed, until)', false)
		     ) w(name, columns, fix, uniq)
		JOIN pg_class r ON r.oid = to_regclass('@schema@.' || w.name)
		JOIN LATERAL (SELECT r.oid WHERE r.relkind = 'r' UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = r.oid) t ON true
		LEFT JOIN LATERAL (
		  SELECT i.indexrelid::regclass::text AS name, i.indisvalid AND i.indisready AS good FROM pg_index i
		  WHERE i.indrelid = t.oid AND i.indpred IS NULL AND (i.indisunique OR NOT w.uniq)
		    AND w.columns = (SELECT string_agg(a.attname, ', ' ORDER BY k.n) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n)
		                     JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum)
		  ORDER BY 2 DESC LIMIT 1) i ON true
		WHERE i.good IS NOT TRUE ORDER BY 2, 1`)
	var found []Finding
	for _, i := range missing {
		f := Finding{Severity: Problem, Finding: fmt.Sprintf("%s has no index on (%s)", i.Table, i.Columns),
			Why: "Every read of every relay then reads whole tables.", Fix: p.in(i.Fix)}
		if i.Unique {
			f.Why = "Nothing prevents two relays from owning the same shard: messages arrive twice and out of order."
		}
		if i.Broken != "" {
			f.Finding = fmt.Sprintf("the index %s is invalid", i.Broken)
			f.Fix = "REINDEX INDEX CONCURRENTLY " + i.Broken
		}
		found = append(found, f)
	}
	return found, err
}

// period computes how long a slot is written: the earliest time that is not in slot 0.
const period = `WITH RECURSIVE s(lo, hi) AS (
		SELECT 0::bigint, min(t) FROM (SELECT 1::bigint << k AS t FROM generate_series(0, 40) k) p WHERE @schema@.slot_at(to_timestamp(t)) <> 0
		UNION ALL
		SELECT CASE WHEN early THEN mid ELSE lo END, CASE WHEN early THEN hi ELSE mid END
		FROM (SELECT lo, hi, (lo + hi) / 2 AS mid, @schema@.slot_at(to_timestamp((lo + hi) / 2)) = 0 AS early FROM s WHERE hi - lo > 1) h)
	SELECT min(hi)::float8 FROM s`

// ring returns how long a slot is written, and how long a turn of the whole ring takes.
func (p *target) ring(ctx context.Context) (slot, whole time.Duration, err error) {
	one, err := value[float64](ctx, p, period)
	if err != nil {
		return 0, 0, err
	}
	slots, err := value[float64](ctx, p, "SELECT @schema@.slot_count()::float8")
	return seconds(one), seconds(one * slots), err
}

func askRing(ctx context.Context, p *target) ([]Finding, error) {
	_, whole, err := p.ring(ctx)
	if err != nil {
		return nil, err
	}
	type slot struct {
		Slot   int
		Oldest float64
	}
	slots, err := rows[slot](ctx, p, `SELECT s, date_part('epoch', clock_timestamp() - e.oldest)
		FROM generate_series(0, @schema@.slot_count() - 1) s CROSS JOIN LATERAL @schema@.slot_ends(s) e
		WHERE e.oldest < clock_timestamp() - make_interval(secs => $1) ORDER BY 2 DESC`, whole.Seconds())
	if err != nil || len(slots) == 0 {
		return nil, err
	}
	holders, err := values[string](ctx, p, "SELECT feed FROM @schema@.cursors ORDER BY pg_snapshot_xmax(s1) LIMIT 1")
	if err != nil {
		return nil, err
	}
	f := Finding{Severity: Warning, Why: "The log grows until all feeds have passed these slots and a relay has emptied them.",
		Finding: fmt.Sprintf("%d slots have not been emptied for longer than a turn of the ring (%s); the oldest message is %s old",
			len(slots), age(whole), age(seconds(slots[0].Oldest))),
		Fix: "run a relay: one of any feed empties slots"}
	if len(holders) > 0 {
		f.Finding += ", the feed furthest behind is " + holders[0]
		f.Fix = fmt.Sprintf("run a relay for the feed %s, or remove the feed if it is not needed", holders[0])
	}
	return []Finding{f}, nil
}

func askDeadRows(ctx context.Context, p *target) ([]Finding, error) {
	type table struct {
		Name       string
		Live, Dead int64
	}
	tables, err := rows[table](ctx, p, `SELECT relid::regclass::text, n_live_tup, n_dead_tup FROM pg_stat_user_tables
		WHERE schemaname = $1 AND relname IN ('checkpoints', 'members', 'deferred', 'feeds') AND n_dead_tup > $2 AND n_dead_tup > n_live_tup
		ORDER BY 1`, p.Schema, p.limits.deadTuples)
	var found []Finding
	for _, t := range tables {
		found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("%s has %d dead rows, and %d live ones", t.Name, t.Dead, t.Live),
			Why: "Vacuum does not keep up, or an old transaction stops it: the table grows and its reads slow down.",
			Fix: "VACUUM (VERBOSE) " + t.Name})
	}
	return found, err
}

// askFrozen finds slots that are not frozen. Relays freeze them if their user may vacuum them.
func askFrozen(ctx context.Context, p *target) ([]Finding, error) {
	type slot struct {
		Name string
		Age  int64
	}
	slots, err := rows[slot](ctx, p, `SELECT c.oid::regclass::text, age(c.relfrozenxid)::bigint
		FROM generate_series(0, @schema@.slot_count() - 1) s
		JOIN pg_class c ON c.oid = to_regclass('@schema@.messages_' || s)
		CROSS JOIN LATERAL @schema@.slot_ends(s) e
		WHERE s <> @schema@.slot_at(clock_timestamp()) AND age(c.relfrozenxid) > $1
		  AND e.newest >= @schema@.full_xid(c.relfrozenxid, pg_snapshot_xmax(pg_current_snapshot()))
		ORDER BY 2 DESC`, p.limits.slotAge)
	var found []Finding
	for _, s := range slots {
		found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("%s is not frozen, after %d transactions", s.Name, s.Age),
			Why: "The server will eventually read all of it in an anti-wraparound vacuum, which cannot be postponed. Relays freeze slots if their user may vacuum them.",
			Fix: fmt.Sprintf("VACUUM (FREEZE) %s; so that relays can, from PostgreSQL 17 on: GRANT MAINTAIN ON %[1]s TO their user", s.Name)})
	}
	return found, err
}

// askHousekeeping finds expired deduplication keys that relays have not deleted yet.
func askHousekeeping(ctx context.Context, p *target) ([]Finding, error) {
	behind, err := values[float64](ctx, p, `SELECT date_part('epoch', clock_timestamp() - @schema@.dedup_window() - d.at) FROM @schema@.dedup_keys d
		WHERE d.at < clock_timestamp() - @schema@.dedup_window() ORDER BY d.at OFFSET $1 LIMIT 1`, p.limits.expiredKeys)
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	return []Finding{{Severity: Warning, Finding: fmt.Sprintf("more than %d deduplication keys have expired", p.limits.expiredKeys),
		Why: "Housekeeping does not keep up, or no relay has run: the table grows.",
		Fix: "run a relay, of any feed; if one runs, shorten its maintain_interval"}}, nil
}

func askGrowth(ctx context.Context, p *target) ([]Finding, error) {
	one, whole, err := p.ring(ctx)
	if err != nil {
		return nil, err
	}
	type amount struct {
		Log, Database int64
		Covers        float64
	}
	amounts, err := rows[amount](ctx, p, `SELECT
		  (SELECT sum(pg_total_relation_size(inhrelid))::bigint FROM pg_inherits WHERE inhparent = '@schema@.messages'::regclass),
		  pg_database_size(current_database()), date_part('epoch', clock_timestamp() - m.created_at)
		FROM (SELECT created_at FROM @schema@.messages ORDER BY xid, seq LIMIT 1) m`)
	if err != nil || len(amounts) == 0 {
		return nil, err
	}
	a := amounts[0]
	f := Finding{Severity: Info, Finding: fmt.Sprintf("the log takes %s of the database's %s", size(a.Log), size(a.Database)),
		Why: "The doctor does not know the size of the disk; a log whose feeds keep up stops growing after a turn of the ring.",
		Fix: "df -h, on the server"}
	if covers := seconds(a.Covers); covers > one {
		perDay := int64(float64(a.Log) / covers.Hours() * 24)
		f.Finding += fmt.Sprintf(", covers %s and grows by about %s a day: %s in a turn of the ring (%s)",
			age(covers), size(perDay), size(int64(float64(perDay)*whole.Hours()/24)), age(whole))
	}
	return []Finding{f}, nil
}

// askWriters finds a log without new messages, whose producers may write elsewhere.
func askWriters(ctx context.Context, p *target) ([]Finding, error) {
	quiet, err := value[float64](ctx, p, `SELECT date_part('epoch', clock_timestamp() - greatest(
		(SELECT max(applied_at) FROM @schema@.migrations),
		(SELECT created_at FROM @schema@.messages ORDER BY xid DESC, seq DESC LIMIT 1)))`)
	if err != nil || seconds(quiet) <= p.limits.idle {
		return nil, err
	}
	return []Finding{{Severity: Info, Finding: "no message has been written to the log for " + age(seconds(quiet)),
		Why: "If there should have been messages, the applications write to another schema or database.",
		Fix: p.in("SELECT max(created_at), count(*) FROM @schema@.messages")}}, nil
}
