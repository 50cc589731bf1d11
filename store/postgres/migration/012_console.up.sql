-- Figures for consoles and metrics, which are asked for every few seconds, and ways to find a place in the log. None of it
-- costs more when there is more: each walk along an index has an end.

-- Since when a member is known.
CREATE INDEX members_member ON @schema@.members (feed, member, at);

-- What was done to a certain message. Of many at once the record has no IDs.
CREATE INDEX audit_target ON @schema@.audit USING gin (target jsonb_path_ops);
CREATE INDEX audit_message ON @schema@.audit ((before ->> 'id'));

-- For how long a slot of the log is written. What the first migration was given is known to slot_at alone: time 0 is in slot
-- 0, and the first time in slot 1 is the period.
DO $$
DECLARE
  low  bigint := 0;
  high bigint := 1;
BEGIN
  WHILE @schema@.slot_at(to_timestamp(high)) = 0 LOOP
    low := high;
    high := high * 2;
  END LOOP;
  WHILE high - low > 1 LOOP
    IF @schema@.slot_at(to_timestamp((low + high) / 2)) = 0 THEN
      low := (low + high) / 2;
    ELSE
      high := (low + high) / 2;
    END IF;
  END LOOP;
  EXECUTE format('CREATE FUNCTION @schema@.slot_period() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN make_interval(secs => %s)', high);
END
$$;

-- How many canaries there were: they draw numbers of the log, and are no messages of anybody.
CREATE SEQUENCE @schema@.canary_count AS bigint CACHE 1;

CREATE FUNCTION @schema@.count_canary() RETURNS trigger
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM nextval('@schema@.canary_count');
  RETURN NULL;
END
$$;

CREATE TRIGGER count_canary AFTER INSERT ON @schema@.canaries FOR EACH ROW EXECUTE FUNCTION @schema@.count_canary();

-- How each lane stands: a shard of a feed, or a slice of one. What is not settled lies behind the cursor's place, or belongs to
-- a transaction that was in flight at one of its snapshots; see settled. Behind the place up to most messages are looked at,
-- and from these the rest is guessed. pending is without canaries.
CREATE FUNCTION @schema@.gauge_lanes(
  OUT feed text, OUT shard smallint, OUT base smallint, OUT tenant text, OUT member uuid, OUT until timestamptz, OUT at timestamptz,
  OUT settled timestamptz, OUT place bigint, OUT crashes smallint, OUT pending bigint, OUT exact boolean, OUT oldest timestamptz)
  RETURNS SETOF record
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_sort = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  most integer;
  top  bigint;
BEGIN
  SELECT least(1000, greatest(50, 8000 / greatest(f.n * @schema@.shard_count() + s.n, 1))) INTO most
    FROM (SELECT count(*) AS n FROM @schema@.feeds) f, (SELECT count(*) AS n FROM @schema@.slices) s;
  SELECT s.last_value INTO top FROM @schema@.message_seq s;
  RETURN QUERY
    WITH lanes AS MATERIALIZED (
      SELECT c.*, greatest(c.lo, c.last) AS place FROM @schema@.cursors c),
    flown AS MATERIALIZED (  -- transactions that have landed since: those that are still in flight have nothing to show
      SELECT DISTINCT x.xid FROM lanes c CROSS JOIN LATERAL (
        SELECT pg_snapshot_xip(c.s1) AS xid UNION ALL SELECT pg_snapshot_xip(c.s2)) x
      WHERE pg_visible_in_snapshot(x.xid, pg_current_snapshot()) LIMIT 100),
    late AS MATERIALIZED (
      SELECT m.* FROM flown x CROSS JOIN LATERAL (
        SELECT m.xid, m.seq, m.shard, m.tenant_id, m.created_at FROM @schema@.messages m
        WHERE m.xid = x.xid AND m.type <> 'postrider.canary' ORDER BY m.seq LIMIT 1000) m
      LIMIT 2000)
    SELECT c.feed, c.shard, c.base, c.tenant, CASE WHEN NOT c.released AND c.until > clock_timestamp() THEN c.member END, c.until, c.at,
           CASE WHEN c.member IS NOT NULL THEN c.at END, c.place, c.crashes,
           coalesce(l.n, 0) + CASE
             WHEN w.seen < most THEN w.n
             WHEN w.n = w.seen OR c.s2 IS NOT NULL THEN w.n * (top - c.place) / greatest(w.reached - c.place, 1)
             WHEN x.seen < most THEN x.n
             ELSE x.n * (top - x.began) / greatest(x.reached - x.began, 1) END,
           (w.seen < most OR w.n < w.seen AND c.s2 IS NULL AND x.seen < most) AND (SELECT count(*) FROM flown) < 100 AND (SELECT count(*) FROM late) < 2000,
           least(l.oldest, CASE WHEN w.oldest IS NULL THEN x.oldest ELSE w.oldest END)
    FROM lanes c
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE m.counts) AS n, count(*) AS seen, max(m.seq) AS reached, min(m.created_at) FILTER (WHERE m.counts) AS oldest
      FROM (
        SELECT m.seq, m.created_at, m.type <> 'postrider.canary' AND NOT pg_visible_in_snapshot(m.xid, c.s1)
                                    AND @schema@.covers(c.tenant, c.others, m.tenant_id) AS counts
        FROM @schema@.messages m WHERE m.shard = c.base AND m.seq > c.place ORDER BY m.seq LIMIT most) m) w
    -- A feed that began with a snapshot has a place far behind it, until a relay has read once. What is new to it has later
    -- transactions.
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE m.counts) AS n, count(*) AS seen, min(m.seq) AS began, max(m.seq) AS reached,
             min(m.created_at) FILTER (WHERE m.counts) AS oldest
      FROM (
        SELECT m.seq, m.created_at, m.type <> 'postrider.canary' AND m.shard + 0 = c.base
                                    AND @schema@.covers(c.tenant, c.others, m.tenant_id) AS counts
        FROM @schema@.messages m
        WHERE w.seen = most AND w.n < w.seen AND c.s2 IS NULL AND m.xid >= pg_snapshot_xmax(c.s1) ORDER BY m.xid LIMIT most) m) x
    CROSS JOIN LATERAL (
      SELECT count(*) AS n, min(m.created_at) AS oldest FROM late m
      WHERE m.shard = c.base AND (m.seq <= c.place OR w.seen = most AND w.n < w.seen AND c.s2 IS NULL)
        AND @schema@.covers(c.tenant, c.others, m.tenant_id)
        AND NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last)) l;
END
$$;

-- How many messages each feed and each consumer have set aside, by status, and how many keys these block: each up to a limit.
CREATE FUNCTION @schema@.gauge_aside(
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

-- Two numbers of the log: messages in front of low were enqueued before the moment, and those from high on at the moment or
-- later, but for what was written at nearly the same time. Null if that is not known. Numbers and times grow together, so that
-- they are found by halves; a few shards are asked for all.
CREATE FUNCTION @schema@.place_at(moment timestamptz, OUT low bigint, OUT high bigint)
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  shards smallint[] := ARRAY(SELECT DISTINCT (i * @schema@.shard_count() / 4)::smallint FROM generate_series(0, 3) i);
  first  bigint;
  middle bigint;
  probe  record;
BEGIN
  SELECT min(l.seq), max(h.seq) + 1 INTO first, high FROM unnest(shards) s(shard)
    CROSS JOIN LATERAL (SELECT m.seq FROM @schema@.messages m WHERE m.shard = s.shard ORDER BY m.seq LIMIT 1) l
    CROSS JOIN LATERAL (SELECT m.seq FROM @schema@.messages m WHERE m.shard = s.shard ORDER BY m.seq DESC LIMIT 1) h;
  WHILE first < high LOOP
    middle := (first + high) / 2;
    SELECT m.seq, m.created_at INTO probe FROM unnest(shards) s(shard) CROSS JOIN LATERAL (
      SELECT m.seq, m.created_at FROM @schema@.messages m WHERE m.shard = s.shard AND m.seq >= middle ORDER BY m.seq LIMIT 1) m
      ORDER BY m.seq LIMIT 1;
    IF probe.seq IS NULL OR probe.created_at >= moment THEN
      high := middle;
    ELSE
      low := probe.seq + 1; -- and null as long as none is: in front of the first of these shards may be messages of others
      first := low;
    END IF;
  END LOOP;
  SELECT min(m.seq) INTO high FROM unnest(shards) s(shard) CROSS JOIN LATERAL (
    SELECT m.seq FROM @schema@.messages m WHERE m.shard = s.shard AND m.seq >= first ORDER BY m.seq LIMIT 1) m;
END
$$;

-- For how long the oldest transaction of this database has been open, and the one that keeps vacuum from cleaning up. With the
-- rights of the owner: others see of other users' sessions only that they are there.
CREATE FUNCTION @schema@.oldest_transactions(OUT transaction interval, OUT snapshot interval)
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

-- Idempotency keys without their answers, for those who may not see these.
CREATE VIEW @schema@.idempotency_kept AS
  SELECT i.tenant, i.principal, i.route, i.key, i.answer IS NOT NULL AS done, coalesce(octet_length(i.answer), 0) AS bytes, i.leased, i.expires
  FROM @schema@.idempotency_keys i;
