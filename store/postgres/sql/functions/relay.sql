-- Functions for relays. Queries are in functions so that the server plans them once per session,
-- also behind a pooler that allows no prepared statements, with settings that keep the plans on the
-- indexes whatever the statistics say.

CREATE OR REPLACE FUNCTION @schema@.at_home() RETURNS boolean
  LANGUAGE sql STABLE
  AS $$
    SELECT EXISTS (
      SELECT FROM @schema@.identity i, pg_control_system() s, pg_database d
      WHERE d.datname = current_database() AND i.system_identifier = s.system_identifier AND i.database_oid = d.oid)
  $$;

-- The time is a number: as text it would depend on the session's TimeZone, and two sessions would
-- disagree about the generation, which looks like a crash.
CREATE OR REPLACE FUNCTION @schema@.current_generation() RETURNS text
  LANGUAGE sql STABLE
  AS $$ SELECT g.id::text || ' ' || extract(epoch FROM pg_postmaster_start_time()) FROM @schema@.generation g $$;

-- read_log reads the next pages of the log, all in one snapshot. The elements of the arrays belong
-- together, one for each scan. A scan covers the window from s1 (exclusive) to s2 (inclusive; null:
-- this statement's snapshot) for the shards in bases. These are at the same position: after message
-- last, or at the start of the window. The scan of a slice has its tenant in tenants. The scan of a
-- shard that has slices has their tenants in others, by shard.
--
-- A scan looks at up to looks[i] sequence numbers, whether or not they match, and at none above
-- upto. The bound is on what it looks at, not on what it finds: otherwise every read would search a
-- window to its end if little is left in it.
--
-- The first row of a scan is no message. It has the snapshot, the generation, a sequence number
-- that was drawn, hi (the snapshot sees no message above it), the position where the scan began,
-- and the position that it reached, or null if it reached the end. The messages follow, in order.
-- STABLE makes all queries use one snapshot.
--
-- A new window begins at its floor lo. If a transaction that was in flight at s1 has ended since,
-- the window begins below that transaction's messages: starts has that number for each transaction
-- that s1 lists.
--
-- A payload of more than max_bytes is left out; bytes then has its size, which the server knows
-- without reading the payload. The relay fetches as many of these as it has room for, with
-- read_payloads.
CREATE OR REPLACE FUNCTION @schema@.read_log(
  take_xid boolean, max_bytes integer, shards integer,
  bases text[], tenants text[], others jsonb[], looks integer[], s1 text[], lo bigint[], starts text[], s2 text[],
  last bigint[], upto bigint[])
  RETURNS TABLE (
    scan integer, snapshot text, generation text, drawn bigint, hi bigint, began bigint, reached bigint,
    shard smallint, seq bigint, id uuid, type text, aggregate_type text, aggregate_id text,
    key text, topic text, routing_key text, tenant_id text, content_type text, schema_version integer, schema_id text,
    dedup_key text, correlation_id text, causation_id text, occurred_at timestamptz, headers jsonb, payload bytea,
    deliver_after timestamptz, priority integer, bytes integer)
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_sort = off
  SET jit = off  -- as wherever plans are disabled: their inflated cost would trigger JIT compilation, which takes seconds
  SET plan_cache_mode = force_generic_plan
  SET work_mem = '64MB'
AS $$
#variable_conflict use_column
DECLARE
  now_snapshot pg_snapshot := pg_current_snapshot();
  from_s       pg_snapshot;
  to_s         pg_snapshot;
  of_bases     smallint[];
  first        bigint[];
  top          bigint;
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'this server is a standby: its snapshots do not list what is in flight' USING ERRCODE = 'PR003';
  END IF;
  IF take_xid THEN
    PERFORM pg_current_xact_id();
  END IF;
  -- Read it after the snapshot was taken: what the snapshot sees was drawn before. It may be too
  -- high, but never too low.
  SELECT q.last_value INTO hi FROM @schema@.message_seq q;
  -- Do not use last_value, which can be ahead of what was drawn.
  drawn := coalesce(pg_sequence_last_value('@schema@.message_seq'), 0);
  -- The same as current_generation, inlined: the call would cost as much as the read.
  SELECT g.id::text || ' ' || extract(epoch FROM pg_postmaster_start_time()) INTO generation FROM @schema@.generation g;
  snapshot := now_snapshot::text;

  FOR i IN 1 .. cardinality(looks) LOOP
    from_s := s1[i]::pg_snapshot;
    to_s := coalesce(s2[i]::pg_snapshot, now_snapshot);
    of_bases := bases[i]::smallint[];
    scan := i;
    began := last[i];
    top := upto[i];
    IF s2[i] IS NULL THEN
      first := starts[i]::bigint[];
      SELECT least(min(coalesce(first[x.nth], 0)), lo[i]) INTO began
        FROM pg_snapshot_xip(from_s) WITH ORDINALITY AS x(xid, nth) WHERE pg_visible_in_snapshot(x.xid, now_snapshot);
      top := hi;
    END IF;
    reached := NULL;
    IF began + looks[i] < top THEN
      reached := began + looks[i];
      top := reached;
    END IF;
    RETURN NEXT;
    RETURN QUERY
      SELECT i, NULL, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, m.shard, m.seq,
             m.id::uuid, m.type::text, m.aggregate_type::text, m.aggregate_id::text, m.key::text, m.topic::text, m.routing_key::text,
             m.tenant_id::text, m.content_type::text, m.schema_version::integer, m.schema_id::text, m.dedup_key::text, m.correlation_id::text,
             m.causation_id::text, coalesce(m.occurred_at, m.created_at), m.headers::jsonb,
             CASE WHEN octet_length(m.payload) <= max_bytes THEN m.payload::bytea END, m.deliver_after, m.priority,
             CASE WHEN octet_length(m.payload) > max_bytes THEN octet_length(m.payload) END
      FROM (
        SELECT m.*, @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, shards) AS shard
        FROM @schema@.messages m
        WHERE m.seq > began AND m.seq <= top AND NOT pg_visible_in_snapshot(m.xid, from_s) AND pg_visible_in_snapshot(m.xid, to_s)
          AND (tenants[i] IS NULL OR m.tenant_id IS NOT DISTINCT FROM tenants[i])
        ORDER BY m.seq OFFSET 0) m  -- OFFSET keeps the planner from computing the shard twice
      WHERE m.shard = ANY (of_bases)
        AND (others[i] IS NULL OR m.tenant_id IS NULL OR NOT coalesce(others[i] -> m.shard::text ? m.tenant_id, false));
  END LOOP;
END
$$;

-- read_payloads returns the payloads that read_log has left out, by sequence number.
CREATE OR REPLACE FUNCTION @schema@.read_payloads(seqs bigint[]) RETURNS TABLE (seq bigint, payload bytea)
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
    SELECT m.seq, m.payload::bytea FROM unnest(seqs) AS w(seq) JOIN @schema@.messages m ON m.seq = w.seq;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.check_identity() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF NOT @schema@.at_home() THEN
    RAISE EXCEPTION 'the ledger in database "%" was written in another database (a restored dump, a clone?)', current_database()
      USING ERRCODE = 'PR001', HINT = 'postrider rebase';
  END IF;
END
$$;

-- check_home compares a relay's home with that of the ledger. The first relay that has a home
-- stores it in the ledger. From then on every relay needs the same one: the relays of a copy have
-- another, or none.
CREATE OR REPLACE FUNCTION @schema@.check_home(relay_home text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  its text := (SELECT i.home FROM @schema@.identity i);
BEGIN
  IF its IS NULL AND relay_home IS NOT NULL THEN
    UPDATE @schema@.identity SET home = relay_home WHERE home IS NULL;
    IF FOUND THEN
      UPDATE @schema@.identity SET row_xid = xmin;  -- as in move_in
      RETURN;
    END IF;
    its := (SELECT i.home FROM @schema@.identity i);  -- another relay was faster
  END IF;
  IF its IS DISTINCT FROM relay_home THEN
    RAISE EXCEPTION 'the home of the ledger in database "%" is %, and % (a copy of the server?)', current_database(), quote_literal(its),
      coalesce('this relay''s is ' || quote_literal(relay_home), 'this relay has none: say home in its configuration')
      USING ERRCODE = 'PR001', HINT = 'postrider rebase';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION @schema@.check_home(text) FROM PUBLIC;

-- balance announces a member, takes free shards up to the member's fair share, and returns the
-- shards that it owns, or one row with shard null if there are none. A write waits for the disk only
-- if shards were taken: after a crash that lost it, the next owner would take them for released, and
-- send what has arrived. Losing others only costs a takeover.
CREATE OR REPLACE FUNCTION @schema@.balance(
  feed_name text, member_id uuid, member_name text, lease interval, relay_home text DEFAULT NULL)
  RETURNS TABLE (
    shard smallint, n bigint, s1 text, lo bigint, starts bigint[], s2 text, lo2 bigint, starts2 bigint[], last bigint, hi bigint,
    quota integer, members integer, generation text, crashes smallint, deferred boolean, paused boolean,
    base smallint, tenant text, others text, excluded uuid[], shards integer,
    moving boolean, stop_s text, stop_lo bigint, stop_starts bigint[], stop_hi bigint, unsure_ms bigint, id text)
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
  feed  @schema@.feeds;
  move  @schema@.moves;
  cursors @schema@.cursors[];
  taken smallint[];
  c     record;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM @schema@.check_isolation();
  PERFORM @schema@.check_identity();
  PERFORM @schema@.check_home(relay_home);
  IF EXISTS (SELECT FROM @schema@.moves v WHERE v.feed = feed_name) THEN
    PERFORM @schema@.advance_move(feed_name);
  END IF;
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('@schema@.balance/' || feed_name, 0));  -- keeps what is read now valid until shards are taken
  SELECT * INTO feed FROM @schema@.feeds f WHERE f.name = feed_name;
  SELECT * INTO move FROM @schema@.moves v WHERE v.feed = feed_name;
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
  fair := CASE WHEN feed.paused OR move.feed IS NOT NULL AND move.s IS NULL THEN 0
          ELSE coalesce(feed.shards / alive + CASE WHEN rank < feed.shards % alive THEN 1 ELSE 0 END, 0) END;

  cursors := ARRAY(SELECT c FROM @schema@.cursors c WHERE c.feed = feed_name);  -- looked up once, because it is most of the work
  SELECT count(*) INTO held FROM unnest(cursors) c WHERE c.member = member_id AND NOT c.released AND c.tenant IS NULL;
  FOR c IN SELECT * FROM unnest(cursors) c
           WHERE c.released OR c.until < clock_timestamp() AND c.member IS DISTINCT FROM member_id
           ORDER BY c.tenant IS NOT NULL
  LOOP
    -- A slice goes to the owner of its shard, and does not count towards the share.
    CONTINUE WHEN c.tenant IS NULL AND held >= fair;
    CONTINUE WHEN c.s1::text = move.s::text AND c.s2 IS NULL;  -- it waits for the others there
    CONTINUE WHEN c.tenant IS NOT NULL AND NOT (
      SELECT b.member = member_id AND NOT b.released FROM @schema@.checkpoints b
      WHERE b.feed = feed_name AND b.shard = c.base ORDER BY b.n DESC LIMIT 1) IS TRUE;
    -- An expired lease means something only if other members were heard during it. Otherwise the
    -- server itself stood still, and owners get another quarter of their lease to settle what they
    -- have sent. If another member took over at once, it would send that again.
    IF NOT c.released THEN
      SELECT min(m.at) INTO heard FROM @schema@.members m
      WHERE m.feed = feed_name AND m.until > c.at AND m.at > c.at + (c.until - c.at) / 4;
      IF heard IS NULL THEN
        INSERT INTO @schema@.members (feed, member, name, until)
          VALUES (feed_name, member_id, member_name, clock_timestamp() + lease);
      END IF;
      CONTINUE WHEN heard IS NULL OR heard > clock_timestamp() - (c.until - c.at) / 4;
    END IF;
    INSERT INTO @schema@.checkpoints (feed, shard, n, member, until, s1, lo, starts, s2, lo2, starts2, last, hi, crashes, sent)
      VALUES (feed_name, c.shard, c.n + 1, member_id, clock_timestamp() + lease, c.s1, c.lo, c.starts, c.s2, c.lo2, c.starts2, c.last, c.hi,
              CASE WHEN c.released THEN 0 ELSE least(c.crashes, 999) + 1 END, c.unsure)
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      taken := taken || c.shard;
      held := held + CASE WHEN c.tenant IS NULL THEN 1 ELSE 0 END;
    END IF;
  END LOOP;
  IF taken IS NOT NULL THEN
    PERFORM set_config('synchronous_commit', 'local', true);
    cursors := ARRAY(SELECT c FROM @schema@.cursors c WHERE c.feed = feed_name);
  END IF;
  SELECT count(*) + fair INTO fair FROM unnest(cursors) c WHERE c.tenant IS NOT NULL AND c.member = member_id AND NOT c.released;

  RETURN QUERY
    SELECT c.shard, c.n, c.s1::text, c.lo, c.starts, c.s2::text, c.lo2, c.starts2, c.last, c.hi, fair, alive, @schema@.current_generation(),
           c.crashes, EXISTS (SELECT FROM @schema@.deferred d WHERE d.feed = feed_name AND d.available_at < 'infinity')
           OR EXISTS (SELECT FROM @schema@.deferred d WHERE d.feed = feed_name AND d.name_digest IS NOT NULL), coalesce(feed.paused, false),
           c.base, c.tenant, to_jsonb(c.others)::text,
           CASE WHEN row_number() OVER () = 1 THEN ARRAY(SELECT x.id FROM @schema@.excluded x WHERE x.feed = feed_name ORDER BY x.seq) END,
           coalesce(feed.shards, 0)::integer, move.feed IS NOT NULL, move.s::text, move.lo, move.starts, move.hi,
           (extract(epoch FROM clock_timestamp() - CASE WHEN c.shard = ANY (taken) THEN c.sent ELSE c.unsure END) * 1000)::bigint, feed.id::text
    FROM (SELECT) one LEFT JOIN unnest(cursors) c ON c.member = member_id AND NOT c.released;
END
$$;

-- settle appends one ledger row for each shard and returns the shards for which that succeeded; the
-- others have a new owner. Positions are valid only in the generation in which they were read. A
-- row that is not newer than the newest is refused, even if its primary key is free because sweep
-- or a change of shards deleted the old row: otherwise a member that was suspended for long would
-- believe that it still owns the shard. sent_ms is how long ago the oldest attempt began to send
-- something beyond the position, or negative if there was none.
CREATE OR REPLACE FUNCTION @schema@.settle(
  feed_name text, member_id uuid, lease interval, in_generation text, releasing boolean,
  shards smallint[], n bigint[], s1 text[], lo bigint[], starts text[], s2 text[], lo2 bigint[], starts2 text[], last bigint[], hi bigint[],
  crashes smallint[], sent_ms bigint[])
  RETURNS SETOF smallint
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF @schema@.current_generation() IS DISTINCT FROM in_generation THEN
    RAISE EXCEPTION 'the server has recovered from a crash since these positions were read' USING ERRCODE = 'PR002';
  END IF;
  RETURN QUERY
    INSERT INTO @schema@.checkpoints (feed, shard, n, member, released, until, s1, lo, starts, s2, lo2, starts2, last, hi, crashes, sent)
    SELECT feed_name, c.shard, c.n, member_id, releasing, clock_timestamp() + lease, c.s1::pg_snapshot, c.lo, c.starts::bigint[],
           c.s2::pg_snapshot, c.lo2, c.starts2::bigint[], c.last, c.hi, c.crashes,
           CASE WHEN c.sent_ms >= 0 THEN clock_timestamp() - c.sent_ms * interval '1 millisecond' END
    FROM unnest(shards, n, s1, lo, starts, s2, lo2, starts2, last, hi, crashes, sent_ms)
      AS c(shard, n, s1, lo, starts, s2, lo2, starts2, last, hi, crashes, sent_ms)
    WHERE c.n > (SELECT k.n FROM @schema@.checkpoints k WHERE k.feed = feed_name AND k.shard = c.shard ORDER BY k.n DESC LIMIT 1)
    ORDER BY c.shard
    ON CONFLICT DO NOTHING
    RETURNING shard;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.leave_feed(feed_name text, member_id uuid) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  -- Valid as long as the newest announcement, so that this row outlives the rows that it revokes.
  INSERT INTO @schema@.members (feed, member, name, until, gone)
    SELECT feed_name, member_id, '', max(m.until), true
    FROM @schema@.members m WHERE m.feed = feed_name AND m.member = member_id AND m.until > clock_timestamp()
    HAVING max(m.until) IS NOT NULL;
END
$$;
