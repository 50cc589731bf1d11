-- Figures for the console and for metrics, which ask every few seconds, and functions that find a
-- place in the log. The cost does not grow with the amount of data, because each index scan is
-- bounded.

-- gauge_shards returns the state of each shard of a feed, and of each slice of one. A message that
-- is not settled lies above the cursor's place, or belongs to a transaction that was in flight at
-- one of its snapshots; see settled. Above each place, gauge_shards looks at up to most messages and
-- extrapolates from these. pending leaves out canaries.
CREATE OR REPLACE FUNCTION @schema@.gauge_shards(
  OUT feed text, OUT shard smallint, OUT base smallint, OUT tenant text, OUT member uuid, OUT until timestamptz, OUT at timestamptz,
  OUT settled timestamptz, OUT place bigint, OUT crashes smallint, OUT pending bigint, OUT exact boolean, OUT oldest timestamptz)
  RETURNS SETOF record
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_sort = off
  SET enable_mergejoin = off
  SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  most integer;
  top  bigint;
BEGIN
  SELECT least(8000, greatest(50, 64000 / greatest(count(DISTINCT (greatest(c.lo, c.last), c.shards)), 1))) INTO most FROM @schema@.cursors c;
  SELECT q.last_value INTO top FROM @schema@.message_seq q;
  RETURN QUERY
    WITH cursors AS MATERIALIZED (
      SELECT c.*, greatest(c.lo, c.last) AS place,
             EXISTS (SELECT FROM (SELECT pg_snapshot_xip(c.s1) UNION ALL SELECT pg_snapshot_xip(c.s2)) x(xid)
                     WHERE pg_visible_in_snapshot(x.xid, pg_current_snapshot())) AS flown
      FROM @schema@.cursors c),
    scans AS MATERIALIZED (SELECT DISTINCT c.place, c.shards FROM cursors c),
    seen AS MATERIALIZED (
      SELECT s.place, s.shards, m.seq, m.xid, m.tenant_id, m.created_at, m.counts, m.shard
      FROM scans s CROSS JOIN LATERAL (
        SELECT m.seq, m.xid, m.tenant_id, m.created_at, m.type <> 'postrider.canary' AS counts,
               @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, s.shards) AS shard
        FROM @schema@.messages m WHERE m.seq > s.place ORDER BY m.seq LIMIT most) m),
    reached AS MATERIALIZED (SELECT s.place, s.shards, count(*) AS n, max(s.seq) AS seq FROM seen s GROUP BY 1, 2),
    late AS MATERIALIZED (  -- messages of transactions that have committed since; those still in flight are not visible
      SELECT f.shards, m.* FROM (SELECT c.shards, min(c.passed) AS first, max(c.place) AS last FROM cursors c WHERE c.flown GROUP BY 1) f
      CROSS JOIN LATERAL (
        SELECT m.seq, m.xid, m.tenant_id, m.created_at, m.type <> 'postrider.canary' AS counts,
               @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, f.shards) AS shard
        FROM @schema@.messages m WHERE m.seq > f.first AND m.seq <= f.last ORDER BY m.seq LIMIT 8000) m),
    fresh AS MATERIALIZED (
      SELECT c.feed, c.shard, count(*) AS n, min(m.created_at) AS oldest
      FROM cursors c JOIN seen m ON m.place = c.place AND m.shards = c.shards AND m.shard = c.base
      WHERE m.counts AND NOT pg_visible_in_snapshot(m.xid, c.s1) AND @schema@.covers(c.tenant, c.others, m.tenant_id) GROUP BY 1, 2),
    landed AS MATERIALIZED (
      SELECT c.feed, c.shard, count(*) AS n, min(m.created_at) AS oldest
      FROM cursors c JOIN late m ON m.shards = c.shards AND m.shard = c.base
      WHERE c.flown AND m.seq <= c.place AND m.counts AND @schema@.covers(c.tenant, c.others, m.tenant_id)
        AND NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last) GROUP BY 1, 2)
    SELECT c.feed, c.shard, c.base, c.tenant, CASE WHEN NOT c.released AND c.until > clock_timestamp() THEN c.member END, c.until, c.at,
           CASE WHEN c.member IS NOT NULL THEN c.at END, c.place, c.crashes,
           coalesce(l.n, 0) + CASE WHEN coalesce(r.n, 0) < most THEN coalesce(w.n, 0)
                                   ELSE coalesce(w.n, 0) * (top - c.place) / greatest(r.seq - c.place, 1) END,
           coalesce(r.n, 0) < most AND (NOT c.flown OR (SELECT count(*) FROM late m WHERE m.shards = c.shards) < 8000),
           least(l.oldest, w.oldest)
    FROM cursors c
    LEFT JOIN reached r ON r.place = c.place AND r.shards = c.shards
    LEFT JOIN fresh w ON w.feed = c.feed AND w.shard = c.shard
    LEFT JOIN landed l ON l.feed = c.feed AND l.shard = c.shard;
END
$$;

-- gauge_deferred returns, for each feed and each consumer, the number of deferred messages by status
-- and the number of keys that they block. It counts each up to a limit.
CREATE OR REPLACE FUNCTION @schema@.gauge_deferred(
  most integer, OUT feed text, OUT scheduled bigint, OUT retry bigint, OUT held bigint, OUT waiting bigint, OUT dead bigint, OUT parked bigint,
  OUT blocking bigint, OUT blocked bigint)
  RETURNS SETOF record
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT f.feed,
      (SELECT count(*) FROM (SELECT FROM @schema@.deferred d WHERE d.feed = f.feed AND d.status = 'scheduled' LIMIT most) d),
      (SELECT count(*) FROM (SELECT FROM @schema@.deferred d WHERE d.feed = f.feed AND d.status = 'retry' LIMIT most) d),
      (SELECT count(*) FROM (SELECT FROM @schema@.deferred d WHERE d.feed = f.feed AND d.status = 'held' LIMIT most) d),
      (SELECT count(*) FROM (SELECT FROM @schema@.deferred d WHERE d.feed = f.feed AND d.status = 'waiting' LIMIT most) d),
      (SELECT count(*) FROM (SELECT FROM @schema@.deferred d WHERE d.feed = f.feed AND d.status = 'dead' LIMIT most) d),
      (SELECT count(*) FROM (SELECT FROM @schema@.deferred d WHERE d.feed = f.feed AND d.status = 'parked' LIMIT most) d),
      b.n, b.keys
    FROM (SELECT f.name FROM @schema@.feeds f UNION ALL SELECT 'inbox/' || c.name FROM @schema@.consumers c) f(feed)
    CROSS JOIN LATERAL (
      SELECT count(*) AS n, count(*) FILTER (WHERE d.first) AS keys FROM (
        SELECT (d.shard, d.hash) IS DISTINCT FROM
                 (lag(d.shard) OVER (ORDER BY d.shard, d.hash), lag(d.hash) OVER (ORDER BY d.shard, d.hash)) AS first
        FROM (SELECT d.shard, hashtextextended(d.order_key, 0) AS hash
              FROM @schema@.deferred d WHERE d.feed = f.feed AND d.blocking AND d.order_key IS NOT NULL
              ORDER BY d.shard, hashtextextended(d.order_key, 0) LIMIT most) d) d) b;
END
$$;

-- place_at returns two sequence numbers: messages below low were enqueued before the moment, and
-- those from high on at the moment or later, except for messages written at nearly the same time. A
-- null means unknown. Numbers and times grow together, so it uses binary search.
CREATE OR REPLACE FUNCTION @schema@.place_at(moment timestamptz, OUT low bigint, OUT high bigint)
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  first  bigint;
  middle bigint;
  probe  record;
BEGIN
  SELECT m.seq INTO first FROM @schema@.messages m ORDER BY m.seq LIMIT 1;
  SELECT m.seq + 1 INTO high FROM @schema@.messages m ORDER BY m.seq DESC LIMIT 1;
  WHILE first < high LOOP
    middle := (first + high) / 2;
    SELECT m.seq, m.created_at INTO probe FROM @schema@.messages m WHERE m.seq >= middle ORDER BY m.seq LIMIT 1;
    IF probe.seq IS NULL OR probe.created_at >= moment THEN
      high := middle;
    ELSE
      low := probe.seq + 1;  -- stays null as long as there is none
      first := low;
    END IF;
  END LOOP;
  SELECT m.seq INTO high FROM @schema@.messages m WHERE m.seq >= first ORDER BY m.seq LIMIT 1;
END
$$;

-- oldest_transactions returns the age of the oldest open transaction of this database, and of the
-- one that keeps vacuum from removing rows. It runs with the owner's rights, because other users
-- cannot see the details of sessions that are not theirs.
CREATE OR REPLACE FUNCTION @schema@.oldest_transactions(OUT transaction interval, OUT snapshot interval)
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  WITH open AS (
    SELECT a.xact_start AS since, coalesce(a.xact_start, a.query_start, a.backend_start) AS held, greatest(age(a.backend_xmin), age(a.backend_xid)) AS age
    FROM pg_stat_activity a
    WHERE a.pid <> pg_backend_pid() AND (a.datname = current_database() OR a.datid IS NULL) AND a.backend_type <> 'autovacuum worker'
    UNION ALL
    SELECT p.prepared, p.prepared, age(p.transaction) FROM pg_prepared_xacts p WHERE p.database = current_database())
  SELECT clock_timestamp() - (SELECT min(o.since) FROM open o),
         clock_timestamp() - (SELECT o.held FROM open o WHERE o.age IS NOT NULL ORDER BY o.age DESC, o.held LIMIT 1)
$$;
REVOKE ALL ON FUNCTION @schema@.oldest_transactions() FROM PUBLIC;
