-- Functions with which relays handle deferred messages. Relays have no right to write the tables:
-- these functions run with the owner's rights, and check that the caller owns the shard.

-- forget_excluded deletes exclusions of messages that their feeds have passed.
CREATE OR REPLACE FUNCTION @schema@.forget_excluded() RETURNS void
  LANGUAGE sql
AS $$
  WITH cursors AS MATERIALIZED (SELECT * FROM @schema@.cursors c WHERE c.feed IN (SELECT x.feed FROM @schema@.excluded x))
  DELETE FROM @schema@.excluded x WHERE NOT EXISTS (
    SELECT FROM @schema@.messages m JOIN cursors c ON c.base = x.shard AND @schema@.covers(c.tenant, c.others, m.tenant_id)
    WHERE m.seq = x.seq AND c.feed = x.feed AND NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last))
$$;

-- lock_deferred serializes all changes to the deferred messages of a shard: whether a key is
-- blocked must not change between a read and a write. Messages that are delivered at the first
-- attempt never take this lock.
CREATE OR REPLACE FUNCTION @schema@.lock_deferred(feed_name text, shards smallint[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(h.hash) FROM (
    SELECT DISTINCT hashtextextended('@schema@.deferred/' || feed_name || '/' || s, 0) AS hash FROM unnest(shards) s ORDER BY 1) h;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.check_holder(feed_name text, member_id uuid, shards smallint[]) RETURNS void
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
BEGIN
  IF feed_name LIKE 'inbox/%'  -- relays must not touch what consumers have deferred
     OR EXISTS (SELECT FROM unnest(shards) s
             WHERE NOT coalesce((SELECT c.member = member_id AND NOT c.released FROM @schema@.checkpoints c
                                 WHERE c.feed = feed_name AND c.shard = s ORDER BY c.n DESC LIMIT 1), false)) THEN
    RAISE EXCEPTION 'another relay has taken the shard' USING ERRCODE = 'PR004';
  END IF;
END
$$;

-- defer defers messages of the log. The elements of the arrays belong together; held has the slices
-- or shards from which the messages were read. No write here waits for the disk: the checkpoint
-- that relies on it is written later, so a crash that loses this write loses the checkpoint too. A
-- bare row keeps nothing of the content that the table could have refused.
CREATE OR REPLACE FUNCTION @schema@.defer(
  feed_name text, member_id uuid, held smallint[], shards smallint[], seqs bigint[], statuses text[], block boolean[],
  tried integer[], delays double precision[], causes text[], names text[], bares boolean[], ages double precision[]) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  waiting tid[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM @schema@.lock_deferred(feed_name, shards);
  PERFORM @schema@.check_holder(feed_name, member_id, held);
  INSERT INTO @schema@.deferred (
    feed, seq, shard, status, blocking, attempts, available_at, tried_at, last_error, order_key, priority, id, type,
    aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id, dedup_key,
    correlation_id, causation_id, created_at, occurred_at, deliver_after, headers, payload, name, bare, sent_at)
  SELECT feed_name, m.seq, m.of_shard, m.want, m.blocks, m.tries,
         CASE WHEN m.want = 'retry' THEN clock_timestamp() + make_interval(secs => m.delay)
              WHEN m.want = 'scheduled' THEN coalesce(m.deliver_after, clock_timestamp())
              ELSE 'infinity' END,
         CASE WHEN m.want IN ('retry', 'dead') OR m.want = 'held' AND m.cause <> '' THEN clock_timestamp() END,
         nullif(m.cause, ''), m.order_key,
         coalesce(m.priority, 0), m.id, CASE WHEN m.bare THEN left(m.type, 100) ELSE m.type END,
         CASE WHEN NOT m.bare THEN m.aggregate_type END, CASE WHEN NOT m.bare THEN m.aggregate_id END,
         CASE WHEN NOT m.bare THEN m.key END, CASE WHEN NOT m.bare THEN m.topic END, CASE WHEN NOT m.bare THEN m.routing_key END,
         CASE WHEN NOT m.bare THEN m.tenant_id END, CASE WHEN NOT m.bare THEN m.content_type END, m.schema_version,
         CASE WHEN NOT m.bare THEN m.schema_id END, CASE WHEN NOT m.bare THEN m.dedup_key END,
         CASE WHEN NOT m.bare THEN m.correlation_id END, CASE WHEN NOT m.bare THEN m.causation_id END,
         m.created_at, coalesce(m.occurred_at, m.created_at), m.deliver_after,
         CASE WHEN NOT m.bare THEN m.headers END, CASE WHEN m.bare THEN '' ELSE m.payload END,
         CASE WHEN m.want = 'held' THEN coalesce(m.name, '') END, m.bare, clock_timestamp() - make_interval(secs => m.age)
  FROM (SELECT m.*, d.shard AS of_shard, k.order_key, d.status AS want, d.blocking AS blocks, d.attempts AS tries, d.delay, d.cause, d.name, d.bare,
               d.age
        FROM unnest(shards, seqs, statuses, block, tried, delays, causes, names, bares, ages)
               AS d(shard, seq, status, blocking, attempts, delay, cause, name, bare, age)
        CROSS JOIN LATERAL (SELECT * FROM @schema@.messages m WHERE m.seq = d.seq LIMIT 1) m
        CROSS JOIN LATERAL (SELECT CASE WHEN NOT d.bare THEN @schema@.order_key(m.key, m.aggregate_type, m.aggregate_id) END) k(order_key)
        WHERE NOT EXISTS (SELECT FROM @schema@.excluded x WHERE x.feed = feed_name AND x.seq = d.seq)) m
  ON CONFLICT DO NOTHING;
  -- What a message was to wait for may have been delivered, or block no more, before this call or
  -- before it is repeated: then nothing else would make the message due.
  waiting := @schema@.deferred_rows(feed_name, ARRAY(SELECT w.seq FROM unnest(seqs, statuses) AS w(seq, status) WHERE w.status = 'waiting'));
  PERFORM @schema@.promote(feed_name, k.shard, k.order_key)
    FROM (SELECT DISTINCT d.shard, d.order_key FROM @schema@.deferred d WHERE d.ctid = ANY (waiting) AND d.status || '' = 'waiting') k;
END
$$;

-- promote makes the first message of a key due, after the one before it is gone. It returns false
-- if there is none, that is, if the key is free.
CREATE OR REPLACE FUNCTION @schema@.promote(feed_name text, of_shard smallint, of_key text) RETURNS boolean
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
AS $$
DECLARE
  head record;
BEGIN
  SELECT d.seq, d.status INTO head FROM @schema@.deferred d
    WHERE d.feed = feed_name AND d.shard = of_shard AND d.order_key = of_key AND d.blocking
      AND hashtextextended(d.order_key, 0) = hashtextextended(of_key, 0)
    ORDER BY d.seq LIMIT 1;
  IF head.seq IS NULL THEN
    RETURN false;
  END IF;
  IF head.status = 'waiting' THEN
    UPDATE @schema@.deferred d SET status = 'retry', attempts = 0, available_at = clock_timestamp()
      WHERE d.feed = feed_name AND d.seq = head.seq;
  END IF;
  RETURN true;
END
$$;

-- released returns the names for which messages of some shards are held and that may get messages
-- again: names that are not in held_names, and those in held_names that are to be probed with one
-- message. If there are more than max_rows, it returns those with the oldest messages. It finds
-- each name by one descent of the index, however many messages the name has.
CREATE OR REPLACE FUNCTION @schema@.released(
  feed_name text, shards smallint[], held_shards smallint[], held_names text[], probes boolean[], afters bigint[],
  max_rows integer)
  RETURNS TABLE (shard smallint, name_digest bytea, probe boolean, after bigint)
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_sort = off  -- the index has the order
  SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH RECURSIVE names AS (
      SELECT s.shard, n.name_digest, n.seq FROM unnest(shards) s(shard) CROSS JOIN LATERAL (
        SELECT d.name_digest, d.seq FROM @schema@.deferred d
        WHERE d.feed = feed_name AND d.shard = s.shard AND d.name_digest IS NOT NULL ORDER BY d.name_digest, d.seq LIMIT 1) n
      UNION ALL
      SELECT l.shard, n.name_digest, n.seq FROM names l CROSS JOIN LATERAL (
        SELECT d.name_digest, d.seq FROM @schema@.deferred d
        WHERE d.feed = feed_name AND d.shard = l.shard AND d.name_digest > l.name_digest
        ORDER BY d.name_digest, d.seq LIMIT 1) n)
    SELECT n.shard, n.name_digest, h.probe IS NOT NULL, coalesce(h.after, -1)
    FROM names n LEFT JOIN (
      SELECT h.shard, @schema@.name_digest(h.name) AS name_digest, bool_or(h.probe) AS probe, max(h.after) AS after
      FROM unnest(held_shards, held_names, probes, afters) AS h(shard, name, probe, after) GROUP BY 1, 2) h
      USING (shard, name_digest)
    WHERE h.probe IS NOT FALSE
    ORDER BY h.probe IS NULL, n.seq
    LIMIT max_rows;
END
$$;

-- due returns the messages of some shards that are due, and those held for a name that is no longer
-- in held_names. Of a name that is probed, it returns the first message only. Any other message
-- that blocks its key comes with up to a hundred that wait behind it. The payloads have up to
-- max_bytes in total, unless the first one alone is larger; 0 means no limit. The first row is no
-- message: its attempts are the milliseconds until another message is due, at most a day, or null
-- if there is none.
--
-- The messages are selected without their payloads: the server knows the sizes without reading
-- them.
CREATE OR REPLACE FUNCTION @schema@.due(
  feed_name text, shards smallint[], max_rows integer, max_bytes bigint, held_shards smallint[], held_names text[],
  probes boolean[], afters bigint[]) RETURNS SETOF @schema@.deferred
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
DECLARE
  first  @schema@.deferred;
  moment timestamptz := clock_timestamp();
BEGIN
  SELECT ceil(date_part('epoch', min(least(n.available_at, moment + interval '1 day')) - moment) * 1000) INTO first.attempts
  FROM unnest(shards) s CROSS JOIN LATERAL (
    SELECT d.available_at FROM @schema@.deferred d
    WHERE d.feed = feed_name AND d.shard = s AND d.available_at > moment AND d.available_at < 'infinity'
    ORDER BY d.available_at LIMIT 1) n;
  RETURN NEXT first;
  RETURN QUERY
    -- Due and held messages alternate, so that neither starves the other.
    WITH heads AS MATERIALIZED (
      SELECT h.seq, h.probe, row_number() OVER (ORDER BY h.nth, h.held) AS nth FROM (
        SELECT h.seq, false AS probe, false AS held, row_number() OVER (ORDER BY h.priority DESC, h.available_at, h.seq) AS nth
        FROM unnest(shards) s CROSS JOIN LATERAL (
          SELECT d.seq, d.priority, d.available_at FROM @schema@.deferred d
          WHERE d.feed = feed_name AND d.shard = s AND d.available_at <= moment AND d.available_at < 'infinity'
          ORDER BY d.priority DESC, d.available_at, d.seq LIMIT greatest(max_rows * 2 / greatest(cardinality(shards), 1), 16)) h
        UNION ALL
        SELECT h.seq, n.probe, true, row_number() OVER (ORDER BY NOT n.probe, h.seq)
        FROM (SELECT n.*, count(*) OVER () AS many
              FROM @schema@.released(feed_name, shards, held_shards, held_names, probes, afters, max_rows) n) n
        CROSS JOIN LATERAL (
          SELECT p.seq FROM generate_series(0, n.probe::integer) AS pass(n)  -- after the last message, a probe starts again with the first
          CROSS JOIN LATERAL (
            SELECT d.seq FROM @schema@.deferred d
            WHERE d.feed = feed_name AND d.shard = n.shard AND d.name_digest = n.name_digest
              AND d.seq > CASE WHEN pass.n = 0 THEN n.after ELSE -1 END
              AND NOT (d.blocking AND EXISTS (
                SELECT FROM @schema@.deferred b
                WHERE b.feed = feed_name AND b.shard = d.shard AND b.order_key = d.order_key
                  AND hashtextextended(b.order_key, 0) = hashtextextended(d.order_key, 0) AND b.blocking AND b.seq < d.seq))
            ORDER BY d.seq LIMIT CASE WHEN n.probe THEN 1 ELSE greatest(max_rows * 2 / n.many, 16) END) p
          ORDER BY pass.n, p.seq LIMIT CASE WHEN n.probe THEN 1 END) h) h
      ORDER BY h.nth, h.held LIMIT max_rows),
    runs AS MATERIALIZED (
      SELECT r.seq, r.nth, r.bytes, sum(r.bytes) OVER (ORDER BY r.nth, r.seq ROWS UNBOUNDED PRECEDING) AS total
      FROM heads h CROSS JOIN LATERAL (
        SELECT h.nth, d.seq, octet_length(d.payload) AS bytes
        FROM @schema@.deferred d WHERE d.feed = feed_name AND d.seq = h.seq
        UNION ALL
        SELECT h.nth, w.seq, w.bytes
        FROM @schema@.deferred d CROSS JOIN LATERAL (
          SELECT w.seq, octet_length(w.payload) AS bytes FROM @schema@.deferred w
          WHERE w.feed = feed_name AND w.shard = d.shard AND w.order_key = d.order_key AND w.blocking AND w.seq > d.seq
            AND hashtextextended(w.order_key, 0) = hashtextextended(d.order_key, 0)
          ORDER BY w.seq LIMIT 100) w
        WHERE NOT h.probe AND d.feed = feed_name AND d.seq = h.seq AND d.blocking) r)
    SELECT d.* FROM runs r
    CROSS JOIN LATERAL (SELECT * FROM @schema@.deferred d WHERE d.feed = feed_name AND d.seq = r.seq LIMIT 1) d  -- look up rows one by one, whatever the planner estimates
    WHERE max_bytes = 0 OR r.total <= max_bytes OR r.total = r.bytes
    ORDER BY r.nth, r.seq;
END
$$;

-- deferred_rows returns the locations of some messages' rows. It looks up each one separately: a
-- planner without statistics would compare every row of the table with every message.
CREATE OR REPLACE FUNCTION @schema@.deferred_rows(feed_name text, seqs bigint[]) RETURNS tid[]
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off
  SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN ARRAY(SELECT d.ctid FROM unnest(seqs) AS c(seq)
    CROSS JOIN LATERAL (SELECT d.ctid FROM @schema@.deferred d WHERE d.feed = feed_name AND d.seq = c.seq LIMIT 1) d);
END
$$;

-- end_attempts records the results of due messages, and returns the keys that are no longer
-- blocked. It skips messages on which an operator has acted in the meantime. The caller holds the
-- lock.
CREATE OR REPLACE FUNCTION @schema@.end_attempts(
  feed_name text, seqs bigint[], delivered boolean[], statuses text[], tried integer[], delays double precision[],
  causes text[], names text[] DEFAULT NULL, overtaken boolean[] DEFAULT NULL, ages double precision[] DEFAULT NULL) RETURNS SETOF text
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  -- The "|| ''" below hides a condition from the planner, which would otherwise start with all rows
  -- of a status.
  sent        tid[] := @schema@.deferred_rows(feed_name, ARRAY(SELECT c.seq FROM unnest(seqs, delivered) AS c(seq, delivered) WHERE c.delivered));
  unsent      tid[] := @schema@.deferred_rows(feed_name, ARRAY(SELECT c.seq FROM unnest(seqs, delivered) AS c(seq, delivered) WHERE NOT c.delivered));
  of_shards   smallint[];
  of_keys     text[];
  late_shards smallint[];
  late_keys   text[];
BEGIN
  WITH failed AS (
    UPDATE @schema@.deferred d
    SET tried_at = clock_timestamp(),
        (status, attempts, last_error, name, blocking, available_at, sent_at) = (
          SELECT statuses[i], tried[i], nullif(causes[i], ''), CASE WHEN statuses[i] = 'held' THEN coalesce(names[i], '') END,
                 d.blocking AND NOT coalesce(overtaken[i], false),
                 CASE WHEN statuses[i] = 'retry' THEN clock_timestamp() + make_interval(secs => delays[i]) ELSE 'infinity' END,
                 clock_timestamp() - make_interval(secs => ages[i])
          FROM array_position(seqs, d.seq) i)
    WHERE d.ctid = ANY (unsent) AND d.status || '' IN ('scheduled', 'retry', 'held', 'waiting')
    RETURNING d.job, d.seq, d.id, d.status, d.last_error, d.shard, d.order_key, overtaken[array_position(seqs, d.seq)] AS overtaken),
  results AS (
    INSERT INTO @schema@.job_results (job, seq, id, error)
    SELECT f.job, f.seq, f.id, f.last_error FROM failed f JOIN @schema@.jobs j ON j.id = f.job WHERE f.status = 'dead'  -- an old job may have been swept
    ON CONFLICT (job, seq) DO UPDATE SET error = excluded.error, at = excluded.at)
  SELECT array_agg(f.shard), array_agg(f.order_key) INTO late_shards, late_keys
    FROM failed f WHERE f.overtaken AND f.order_key IS NOT NULL;
  WITH gone AS (
    DELETE FROM @schema@.deferred d
    WHERE d.ctid = ANY (sent) AND d.status || '' IN ('scheduled', 'retry', 'held', 'waiting')
    RETURNING d.shard, d.order_key, d.blocking, d.job, d.seq, d.id),
  results AS (
    INSERT INTO @schema@.job_results (job, seq, id) SELECT g.job, g.seq, g.id FROM gone g JOIN @schema@.jobs j ON j.id = g.job
    ON CONFLICT (job, seq) DO UPDATE SET error = NULL, at = excluded.at)
  SELECT array_agg(g.shard), array_agg(g.order_key) INTO of_shards, of_keys
    FROM (SELECT DISTINCT g.shard, g.order_key FROM gone g WHERE g.blocking) g;
  RETURN QUERY
    SELECT DISTINCT k.key FROM unnest(of_shards || late_shards, of_keys || late_keys) AS k(shard, key)
    WHERE NOT @schema@.promote(feed_name, k.shard, k.key);
END
$$;

CREATE OR REPLACE FUNCTION @schema@.conclude(
  feed_name text, member_id uuid, shards smallint[], seqs bigint[], delivered boolean[], statuses text[],
  tried integer[], delays double precision[], causes text[], names text[], overtaken boolean[], ages double precision[])
  RETURNS SETOF text
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM @schema@.lock_deferred(feed_name, shards);
  PERFORM @schema@.check_holder(feed_name, member_id, shards);
  DELETE FROM @schema@.suspects s WHERE s.feed = feed_name AND s.seq = ANY (seqs);  -- their attempts have ended
  RETURN QUERY SELECT @schema@.end_attempts(feed_name, seqs, delivered, statuses, tried, delays, causes, names, overtaken, ages);
END
$$;

CREATE OR REPLACE FUNCTION @schema@.suspect(feed_name text, member_id uuid, of_shard smallint, of_seq bigint) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  times integer;
BEGIN
  PERFORM @schema@.check_holder(feed_name, member_id, ARRAY[of_shard]);
  DELETE FROM @schema@.suspects s
    WHERE s.feed = feed_name AND s.member = member_id AND s.seq <> of_seq OR s.at < clock_timestamp() - interval '1 day';
  INSERT INTO @schema@.suspects AS s (feed, seq, member) VALUES (feed_name, of_seq, member_id)
    ON CONFLICT (feed, seq) DO UPDATE SET started = s.started + (s.member <> excluded.member)::integer, member = excluded.member, at = excluded.at
    RETURNING s.started INTO times;
  RETURN times;
END
$$;

-- report adds failures to the problems of names. A report without failures ends a problem. It keeps
-- a thousand names of a feed: problems that are over go first, then those not seen for longest. The
-- lock serializes reports, because two could deadlock on each other's rows.
CREATE OR REPLACE FUNCTION @schema@.report(feed_name text, names text[], failed bigint[], causes text[]) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.problems/' || feed_name, 0));
  INSERT INTO @schema@.problems AS p (feed, name, name_digest, failures, cause)
    SELECT feed_name, r.name, @schema@.name_digest(r.name), sum(r.failures), max(r.cause) FROM unnest(names, failed, causes) AS r(name, failures, cause)
    WHERE r.failures > 0 GROUP BY r.name
  ON CONFLICT (feed, name_digest) DO UPDATE
    SET since = CASE WHEN p.over IS NULL THEN p.since ELSE excluded.since END, last = excluded.last, over = NULL,
        failures = CASE WHEN p.over IS NULL THEN p.failures ELSE 0 END + excluded.failures, cause = excluded.cause;
  UPDATE @schema@.problems p SET over = clock_timestamp()
    FROM unnest(names, failed) AS r(name, failures)
    WHERE r.failures = 0 AND p.feed = feed_name AND p.name_digest = @schema@.name_digest(r.name) AND p.over IS NULL;
  DELETE FROM @schema@.problems p USING (
    SELECT o.name_digest FROM @schema@.problems o WHERE o.feed = feed_name
    ORDER BY o.over IS NULL DESC, o.last DESC OFFSET 1000) o
  WHERE p.feed = feed_name AND p.name_digest = o.name_digest;
END
$$;

REVOKE ALL ON FUNCTION
  @schema@.defer(text, uuid, smallint[], smallint[], bigint[], text[], boolean[], integer[], double precision[], text[], text[], boolean[], double precision[]),
  @schema@.conclude(text, uuid, smallint[], bigint[], boolean[], text[], integer[], double precision[], text[], text[], boolean[], double precision[]),
  @schema@.suspect(text, uuid, smallint, bigint), @schema@.report(text, text[], bigint[], text[]) FROM PUBLIC;
