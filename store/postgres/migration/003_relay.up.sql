-- What relays call. Plans live in functions so that they are made once per server session, with settings that keep them
-- on the indexes whatever the statistics say, and also behind a pooler that allows no prepared statements.

-- Reads the next page of several shards in one snapshot. The elements of the arrays belong together, one a shard:
-- the window from s1 (exclusive) to s2 (inclusive; null: this statement's snapshot), its floor lo, and the last sequence
-- number read inside the window (0: none). A slice has the base that it is a part of, and its tenant; what it is a part of
-- has the tenants of its slices in others.
--
-- The first row has branch 0: type is the snapshot, aggregate_type the generation. Rows of branch 1 lie above the floor,
-- at most limits[i] a shard, in order. Rows of branch 2 lie at or below it and belong to transactions that were in flight
-- at s1, at most inflight_limit a transaction, in order within each. STABLE makes all of it one snapshot.
--
-- A payload of more than max_bytes is left out; bytes is its size then, which the server knows without reading it. The relay
-- asks for as many of these as it has room for.
CREATE FUNCTION @schema@.read_log(
  take_xid boolean, inflight_limit integer, max_bytes integer,
  shards smallint[], bases smallint[], tenants text[], others jsonb[], limits integer[], s1 text[], lo bigint[], s2 text[],
  last bigint[])
  RETURNS TABLE (
    branch smallint, shard smallint, xid xid8, seq bigint, id uuid, type text, aggregate_type text, aggregate_id text,
    key text, topic text, routing_key text, tenant_id text, content_type text, schema_version integer, schema_id text,
    dedup_key text, correlation_id text, causation_id text, occurred_at timestamptz, headers jsonb, payload bytea,
    deliver_after timestamptz, priority integer, bytes integer)
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_sort = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off  -- here and wherever plans are disabled: their made-up price would have the others compiled, for seconds
  SET plan_cache_mode = force_generic_plan
  SET work_mem = '64MB'
AS $$
#variable_conflict use_column
DECLARE
  now_snapshot pg_snapshot := pg_current_snapshot();
  inflight     xid8[];
  lowest       bigint;
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'this server is a standby: its snapshots do not list what is in flight' USING ERRCODE = 'PR003';
  END IF;
  IF take_xid THEN
    PERFORM pg_current_xact_id();
  END IF;
  branch := 0;
  type := now_snapshot::text;
  -- What current_generation returns; calling it would cost as much as reading a shard.
  SELECT g.id::text || ' ' || pg_postmaster_start_time()::text INTO aggregate_type FROM @schema@.generation g;
  RETURN NEXT;

  -- A transaction that is still in flight has nothing to show: asking the index for it would be wasted.
  SELECT array_agg(DISTINCT x), min(c.last) INTO inflight, lowest
  FROM unnest(s1::pg_snapshot[], lo, last) AS c(s1, lo, last), pg_snapshot_xip(c.s1) x
  WHERE c.last < c.lo AND pg_visible_in_snapshot(x, now_snapshot);

  IF inflight IS NOT NULL THEN
    RETURN QUERY
    SELECT 2::smallint, r.*
    FROM unnest(inflight) AS i(xid)
    CROSS JOIN LATERAL (
      SELECT c.shard, m.xid, m.seq, m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic, m.routing_key,
             m.tenant_id, m.content_type, m.schema_version, m.schema_id, m.dedup_key, m.correlation_id, m.causation_id,
             coalesce(m.occurred_at, m.created_at), m.headers,
             CASE WHEN octet_length(m.payload) <= max_bytes THEN m.payload END, m.deliver_after, m.priority,
             CASE WHEN octet_length(m.payload) > max_bytes THEN octet_length(m.payload) END
      FROM @schema@.messages m
      JOIN unnest(shards, bases, tenants, others, s1::pg_snapshot[], lo, s2::pg_snapshot[], last)
             AS c(shard, base, tenant, others, s1, lo, s2, last)
        ON m.shard + 0 = c.base  -- "+ 0" keeps the planner off the other index
       AND (c.tenant IS NULL OR m.tenant_id = c.tenant)
       AND (c.others IS NULL OR m.tenant_id IS NULL OR NOT c.others ? m.tenant_id)
       AND m.seq + 0 <= c.lo AND m.seq + 0 > c.last
       AND NOT pg_visible_in_snapshot(m.xid, c.s1)
       AND (c.s2 IS NULL OR pg_visible_in_snapshot(m.xid, c.s2))
      WHERE m.xid = i.xid AND m.seq > lowest
      ORDER BY m.seq
      LIMIT inflight_limit) r;
  END IF;

  RETURN QUERY
  SELECT 1::smallint, r.*
  FROM unnest(shards, bases, tenants, others, limits, s1::pg_snapshot[], lo, s2::pg_snapshot[], last)
         AS c(shard, base, tenant, others, max, s1, lo, s2, last)
  CROSS JOIN LATERAL (
    SELECT c.shard, m.xid, m.seq, m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic, m.routing_key,
           m.tenant_id, m.content_type, m.schema_version, m.schema_id, m.dedup_key, m.correlation_id, m.causation_id,
           coalesce(m.occurred_at, m.created_at), m.headers,
             CASE WHEN octet_length(m.payload) <= max_bytes THEN m.payload END, m.deliver_after, m.priority,
             CASE WHEN octet_length(m.payload) > max_bytes THEN octet_length(m.payload) END
    FROM @schema@.messages m
    WHERE m.shard = c.base AND m.seq > greatest(c.lo, c.last)
      AND (c.tenant IS NULL OR m.tenant_id = c.tenant)
      AND (c.others IS NULL OR m.tenant_id IS NULL OR NOT c.others ? m.tenant_id)
      AND NOT pg_visible_in_snapshot(m.xid, c.s1)
      AND (c.s2 IS NULL OR pg_visible_in_snapshot(m.xid, c.s2))
    ORDER BY m.seq
    LIMIT c.max) r;
END
$$;

-- The payloads that read_log has left out, of messages of these shards with these numbers.
CREATE FUNCTION @schema@.read_payloads(shards smallint[], seqs bigint[]) RETURNS TABLE (seq bigint, payload bytea)
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  RETURN QUERY
    SELECT m.seq, m.payload FROM unnest(shards, seqs) AS w(shard, seq)
    JOIN @schema@.messages m ON m.shard = w.shard AND m.seq = w.seq;
END
$$;

CREATE FUNCTION @schema@.check_identity() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF NOT @schema@.at_home() THEN
    RAISE EXCEPTION 'the ledger was written in another database (a restored dump, a clone?)'
      USING ERRCODE = 'PR001', HINT = 'postrider rebase';
  END IF;
END
$$;

-- Announces a member, takes free shards up to its fair share and returns what it holds, with one row of shard null when
-- that is nothing. Losing any of these writes in a crash costs a take-over, so none of them waits for the disk.
CREATE FUNCTION @schema@.balance(feed_name text, member_id uuid, member_name text, lease interval)
  RETURNS TABLE (
    shard smallint, n bigint, s1 text, lo bigint, s2 text, lo2 bigint, last bigint,
    quota integer, members integer, generation text, crashes smallint, deferred boolean, paused boolean,
    base smallint, tenant text, others text, excluded uuid[])
  LANGUAGE plpgsql
  SET enable_seqscan = off  -- a plan made while the ledger was small must not read all of it later
  SET enable_bitmapscan = off
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  alive integer;
  rank  integer;
  held  integer;
  fair  integer;
  heard timestamptz;
  stop  boolean := coalesce((SELECT f.paused FROM @schema@.feeds f WHERE f.name = feed_name), false);
  c     record;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM @schema@.check_identity();
  INSERT INTO @schema@.generation DEFAULT VALUES ON CONFLICT DO NOTHING;
  IF NOT EXISTS (SELECT FROM @schema@.members m
                 WHERE m.feed = feed_name AND m.member = member_id AND m.until > clock_timestamp() + lease * 0.7) THEN
    INSERT INTO @schema@.members (feed, member, name, until)
      VALUES (feed_name, member_id, member_name, clock_timestamp() + lease);
  END IF;

  SELECT greatest(count(*), 1), count(*) FILTER (WHERE m.member < member_id) INTO alive, rank
  FROM (SELECT m.member FROM @schema@.members m
        WHERE m.feed = feed_name AND m.until > clock_timestamp()
        GROUP BY m.member HAVING NOT bool_or(m.gone)) m;
  fair := CASE WHEN stop THEN 0
          ELSE @schema@.shard_count() / alive + CASE WHEN rank < @schema@.shard_count() % alive THEN 1 ELSE 0 END END;

  SELECT count(*) INTO held FROM @schema@.cursors c
  WHERE c.feed = feed_name AND c.member = member_id AND NOT c.released AND c.tenant IS NULL;
  FOR c IN SELECT * FROM @schema@.cursors c
           WHERE c.feed = feed_name
             AND (c.released OR c.until < clock_timestamp() AND c.member IS DISTINCT FROM member_id)
           ORDER BY c.tenant IS NOT NULL
  LOOP
    -- A slice goes with the shard that it is a part of, and counts for nothing.
    CONTINUE WHEN c.tenant IS NULL AND held >= fair;
    CONTINUE WHEN c.tenant IS NOT NULL AND NOT (
      SELECT b.member = member_id AND NOT b.released FROM @schema@.checkpoints b
      WHERE b.feed = feed_name AND b.shard = c.base ORDER BY b.n DESC LIMIT 1) IS TRUE;
    -- That a holder was silent means something only if others were heard meanwhile. Otherwise the server stood still, and
    -- holders get a quarter of their lease to settle what they have sent: another would send it again.
    IF NOT c.released THEN
      SELECT min(m.at) INTO heard FROM @schema@.members m
      WHERE m.feed = feed_name AND m.until > c.at AND m.at > c.at + (c.until - c.at) / 4;
      IF heard IS NULL THEN
        INSERT INTO @schema@.members (feed, member, name, until)
          VALUES (feed_name, member_id, member_name, clock_timestamp() + lease);
      END IF;
      CONTINUE WHEN heard IS NULL OR heard > clock_timestamp() - (c.until - c.at) / 4;
    END IF;
    INSERT INTO @schema@.checkpoints (feed, shard, n, member, until, lo, lo2, last, s1, s2, crashes)
      VALUES (feed_name, c.shard, c.n + 1, member_id, clock_timestamp() + lease, c.lo, c.lo2, c.last, c.s1, c.s2,
              CASE WHEN c.released THEN 0 ELSE least(c.crashes, 999) + 1 END)
      ON CONFLICT DO NOTHING;
    IF FOUND AND c.tenant IS NULL THEN
      held := held + 1;
    END IF;
  END LOOP;
  SELECT count(*) + fair INTO fair FROM @schema@.slices s JOIN @schema@.cursors c USING (feed, shard)
  WHERE c.feed = feed_name AND c.member = member_id AND NOT c.released;

  RETURN QUERY
    SELECT c.shard, c.n, c.s1::text, c.lo, c.s2::text, c.lo2, c.last, fair, alive, @schema@.current_generation(),
           c.crashes, EXISTS (SELECT FROM @schema@.deferred d WHERE d.feed = feed_name AND d.available_at < 'infinity')
           OR EXISTS (SELECT FROM @schema@.deferred d WHERE d.feed = feed_name AND d.name_digest IS NOT NULL), stop,
           c.base, c.tenant, to_jsonb(c.others)::text,
           CASE WHEN row_number() OVER () = 1 THEN ARRAY(SELECT x.id FROM @schema@.excluded x WHERE x.feed = feed_name ORDER BY x.seq) END
    FROM (SELECT) one LEFT JOIN @schema@.cursors c ON c.feed = feed_name AND c.member = member_id AND NOT c.released;
END
$$;

-- Appends one ledger row a shard and returns the shards for which that succeeded; the others have a new holder. The
-- positions count only in the generation in which they were read.
CREATE FUNCTION @schema@.settle(
  feed_name text, member_id uuid, lease interval, in_generation text, releasing boolean,
  shards smallint[], n bigint[], s1 text[], lo bigint[], s2 text[], lo2 bigint[], last bigint[], crashes smallint[])
  RETURNS SETOF smallint
  LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF @schema@.current_generation() IS DISTINCT FROM in_generation THEN
    RAISE EXCEPTION 'the server has recovered from a crash since these positions were read' USING ERRCODE = 'PR002';
  END IF;
  RETURN QUERY
    INSERT INTO @schema@.checkpoints (feed, shard, n, member, released, until, lo, lo2, last, s1, s2, crashes)
    SELECT feed_name, c.shard, c.n, member_id, releasing, clock_timestamp() + lease, c.lo, c.lo2, c.last,
           c.s1::pg_snapshot, c.s2::pg_snapshot, c.crashes
    FROM unnest(shards, n, s1, lo, s2, lo2, last, crashes) AS c(shard, n, s1, lo, s2, lo2, last, crashes)
    ORDER BY c.shard
    ON CONFLICT DO NOTHING
    RETURNING shard;
END
$$;

CREATE FUNCTION @schema@.leave_feed(feed_name text, member_id uuid) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  -- As long as the newest announcement, so that this row outlives the rows it takes back.
  INSERT INTO @schema@.members (feed, member, name, until, gone)
    SELECT feed_name, member_id, '', max(m.until), true
    FROM @schema@.members m WHERE m.feed = feed_name AND m.member = member_id AND m.until > clock_timestamp()
    HAVING max(m.until) IS NOT NULL;
END
$$;
