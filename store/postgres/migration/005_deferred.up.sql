-- What does not fit a log: messages that wait for their time, that have failed, or that stand behind one that has. Healthy
-- traffic never comes here. Each row is a copy: the log may be emptied under it.
CREATE TABLE @schema@.deferred (
  feed           text        NOT NULL,
  seq            bigint      NOT NULL,  -- that of the log: the order within a key
  shard          smallint    NOT NULL,
  status         text        NOT NULL CHECK (status IN ('scheduled', 'retry', 'waiting', 'dead', 'parked')),
  blocking       boolean     NOT NULL,  -- later messages of the key wait for this one
  attempts       integer     NOT NULL DEFAULT 0,
  available_at   timestamptz NOT NULL,  -- infinity: not by itself
  deferred_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  tried_at       timestamptz,
  last_error     text,
  job            bigint,                -- the replay that brought it here
  order_key      text,
  priority       integer     NOT NULL,
  id             uuid        NOT NULL,
  type           text        NOT NULL,
  aggregate_type text,
  aggregate_id   text,
  key            text,
  topic          text,
  routing_key    text,
  tenant_id      text,
  content_type   text,
  schema_version integer     NOT NULL,
  schema_id      text,
  dedup_key      text,
  correlation_id text,
  causation_id   text,
  created_at     timestamptz NOT NULL,
  occurred_at    timestamptz NOT NULL,
  deliver_after  timestamptz,
  headers        jsonb,
  payload        bytea       NOT NULL,
  PRIMARY KEY (feed, seq)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX deferred_due ON @schema@.deferred (feed, shard, priority DESC, available_at, seq) WHERE available_at < 'infinity';
CREATE INDEX deferred_next ON @schema@.deferred (feed, shard, available_at) WHERE available_at < 'infinity';
CREATE INDEX deferred_blocking ON @schema@.deferred (feed, shard, order_key, seq) WHERE blocking;
CREATE INDEX deferred_id ON @schema@.deferred (id);
CREATE INDEX deferred_status ON @schema@.deferred (feed, status, seq);
-- For operators: any filter over a million dead letters. What is tried again does not pay for it.
CREATE INDEX deferred_type ON @schema@.deferred (type, feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_key ON @schema@.deferred (order_key, feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_topic ON @schema@.deferred (topic, feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_tenant ON @schema@.deferred (tenant_id, feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_created ON @schema@.deferred (created_at, feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_error ON @schema@.deferred USING gin (to_tsvector('simple', last_error))
  WHERE status IN ('dead', 'parked') AND last_error IS NOT NULL;

-- Every change of what is set aside of a shard waits for its turn: whether a key is blocked must not change between a look
-- and a write. Healthy traffic does not come by here.
CREATE FUNCTION @schema@.lock_deferred(feed_name text, shards smallint[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(h.hash) FROM (
    SELECT DISTINCT hashtextextended('@schema@.deferred/' || feed_name || '/' || s, 0) AS hash FROM unnest(shards) s ORDER BY 1) h;
END
$$;

CREATE FUNCTION @schema@.check_holder(feed_name text, member_id uuid, shards smallint[]) RETURNS void
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
BEGIN
  IF EXISTS (SELECT FROM unnest(shards) s
             WHERE NOT coalesce((SELECT c.member = member_id AND NOT c.released FROM @schema@.checkpoints c
                                 WHERE c.feed = feed_name AND c.shard = s ORDER BY c.n DESC LIMIT 1), false)) THEN
    RAISE EXCEPTION 'another relay has taken the shard' USING ERRCODE = 'PR004';
  END IF;
END
$$;

-- Sets messages of the log aside. The elements of the arrays belong together; those of held are the slices or shards that
-- the messages were read from. No write here waits for the disk: a record of
-- progress that counts on it is written later, and so is lost with it.
CREATE FUNCTION @schema@.defer(
  feed_name text, member_id uuid, held smallint[], shards smallint[], seqs bigint[], statuses text[], block boolean[],
  tried integer[], delays double precision[], causes text[]) RETURNS void
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM @schema@.lock_deferred(feed_name, shards);
  PERFORM @schema@.check_holder(feed_name, member_id, held);
  -- First what others wait for.
  FOR step IN 1 .. 2 LOOP
    INSERT INTO @schema@.deferred (
      feed, seq, shard, status, blocking, attempts, available_at, tried_at, last_error, order_key, priority, id, type,
      aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id, dedup_key,
      correlation_id, causation_id, created_at, occurred_at, deliver_after, headers, payload)
    SELECT feed_name, m.seq, m.shard, CASE WHEN head THEN 'retry' ELSE m.want END, m.blocks, m.tries,
           CASE WHEN head THEN clock_timestamp()
                WHEN m.want = 'retry' THEN clock_timestamp() + make_interval(secs => m.delay)
                WHEN m.want = 'scheduled' THEN coalesce(m.deliver_after, clock_timestamp())
                ELSE 'infinity' END,
           CASE WHEN m.want IN ('retry', 'dead') THEN clock_timestamp() END, nullif(m.cause, ''), m.order_key,
           coalesce(m.priority, 0), m.id, m.type,
           m.aggregate_type, m.aggregate_id, m.key, m.topic, m.routing_key, m.tenant_id, m.content_type, m.schema_version,
           m.schema_id, m.dedup_key, m.correlation_id, m.causation_id, m.created_at, coalesce(m.occurred_at, m.created_at),
           m.deliver_after, m.headers, m.payload
    FROM (SELECT m.*, k.order_key, d.status AS want, d.blocking AS blocks, d.attempts AS tries, d.delay, d.cause,
                 row_number() OVER (PARTITION BY m.shard, k.order_key ORDER BY m.seq) AS nth
          FROM unnest(shards, seqs, statuses, block, tried, delays, causes)
                 AS d(shard, seq, status, blocking, attempts, delay, cause)
          JOIN @schema@.messages m ON m.shard = d.shard AND m.seq = d.seq
          CROSS JOIN LATERAL (SELECT coalesce(m.key, m.aggregate_type || '/' || m.aggregate_id)) k(order_key)
          WHERE (d.status = 'waiting') = (step = 2)) m
    CROSS JOIN LATERAL (
      SELECT m.want = 'waiting' AND m.nth = 1
             AND NOT EXISTS (SELECT FROM @schema@.deferred b
                             WHERE b.feed = feed_name AND b.shard = m.shard AND b.order_key = m.order_key AND b.blocking
                               AND b.seq < m.seq)) h(head)
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;

-- Makes the first message of a key go, now that what it waited for is gone. Returns false if there is none: the key is free.
CREATE FUNCTION @schema@.promote(feed_name text, of_shard smallint, of_key text) RETURNS boolean
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
AS $$
DECLARE
  head record;
BEGIN
  SELECT d.seq, d.status INTO head FROM @schema@.deferred d
    WHERE d.feed = feed_name AND d.shard = of_shard AND d.order_key = of_key AND d.blocking ORDER BY d.seq LIMIT 1;
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

-- What is due of some shards. A message that blocks its key comes with up to a hundred that wait behind it. The first row
-- has no message: its attempts are the milliseconds until another one is due, at most a day, null if none is.
CREATE FUNCTION @schema@.due(feed_name text, shards smallint[], max_rows integer) RETURNS SETOF @schema@.deferred
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
    WITH heads AS MATERIALIZED (
      SELECT h.d, row_number() OVER (ORDER BY (h.d).priority DESC, (h.d).available_at, (h.d).seq) AS nth
      FROM unnest(shards) s CROSS JOIN LATERAL (
        SELECT d FROM @schema@.deferred d
        WHERE d.feed = feed_name AND d.shard = s AND d.available_at <= moment AND d.available_at < 'infinity'
        ORDER BY d.priority DESC, d.available_at, d.seq LIMIT greatest(max_rows * 2 / greatest(cardinality(shards), 1), 16)) h)
    SELECT (r.d).* FROM (
      SELECT h.nth, h.d FROM heads h WHERE h.nth <= max_rows
      UNION ALL
      SELECT h.nth, w.d FROM heads h CROSS JOIN LATERAL (
        SELECT w AS d FROM @schema@.deferred w
        WHERE (h.d).blocking AND w.feed = feed_name AND w.shard = (h.d).shard AND w.order_key = (h.d).order_key
          AND w.blocking AND w.seq > (h.d).seq
        ORDER BY w.seq LIMIT 100) w
      WHERE h.nth <= max_rows) r
    ORDER BY r.nth, (r.d).seq;
END
$$;

-- Records what has become of messages that were due, and returns the keys that nothing blocks any more. What an operator
-- has meanwhile decided about stays as it is. What "|| ''" is appended to is kept from the planner, here and in act: it would
-- begin with all rows of a status. The caller holds the lock.
CREATE FUNCTION @schema@.end_attempts(
  feed_name text, seqs bigint[], delivered boolean[], statuses text[], tried integer[], delays double precision[],
  causes text[]) RETURNS SETOF text
  LANGUAGE plpgsql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  of_shards smallint[];
  of_keys   text[];
BEGIN
  WITH failed AS (
    UPDATE @schema@.deferred d
    SET status = c.status, attempts = c.attempts, last_error = nullif(c.cause, ''), tried_at = clock_timestamp(),
        available_at = CASE WHEN c.status = 'retry' THEN clock_timestamp() + make_interval(secs => c.delay) ELSE 'infinity' END
    FROM unnest(seqs, delivered, statuses, tried, delays, causes) AS c(seq, delivered, status, attempts, delay, cause)
    WHERE d.feed = feed_name AND d.seq = c.seq AND NOT c.delivered AND d.status || '' IN ('scheduled', 'retry', 'waiting')
    RETURNING d.job, d.seq, d.id, d.status, d.last_error)
  INSERT INTO @schema@.job_results (job, seq, id, error)
    SELECT f.job, f.seq, f.id, f.last_error FROM failed f WHERE f.job IS NOT NULL AND f.status = 'dead'
    ON CONFLICT (job, seq) DO UPDATE SET error = excluded.error, at = excluded.at;
  WITH gone AS (
    DELETE FROM @schema@.deferred d USING unnest(seqs, delivered) AS c(seq, delivered)
    WHERE d.feed = feed_name AND d.seq = c.seq AND c.delivered AND d.status || '' IN ('scheduled', 'retry', 'waiting')
    RETURNING d.shard, d.order_key, d.blocking, d.job, d.seq, d.id),
  results AS (
    INSERT INTO @schema@.job_results (job, seq, id) SELECT g.job, g.seq, g.id FROM gone g WHERE g.job IS NOT NULL
    ON CONFLICT (job, seq) DO UPDATE SET error = NULL, at = excluded.at)
  SELECT array_agg(g.shard), array_agg(g.order_key) INTO of_shards, of_keys
    FROM (SELECT DISTINCT g.shard, g.order_key FROM gone g WHERE g.blocking) g;
  RETURN QUERY
    SELECT k.key FROM unnest(of_shards, of_keys) AS k(shard, key) WHERE NOT @schema@.promote(feed_name, k.shard, k.key);
END
$$;

CREATE FUNCTION @schema@.conclude(
  feed_name text, member_id uuid, shards smallint[], seqs bigint[], delivered boolean[], statuses text[],
  tried integer[], delays double precision[], causes text[]) RETURNS SETOF text
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM @schema@.lock_deferred(feed_name, shards);
  PERFORM @schema@.check_holder(feed_name, member_id, shards);
  DELETE FROM @schema@.suspects s WHERE s.feed = feed_name AND s.seq = ANY (seqs);  -- their attempts have ended
  RETURN QUERY SELECT @schema@.end_attempts(feed_name, seqs, delivered, statuses, tried, delays, causes);
END
$$;

-- A message that has been begun and not ended, again and again, may be what kills relays. Only those that follow a crash
-- are noted, one a member, so that a death is blamed on one message alone.
CREATE TABLE @schema@.suspects (
  feed    text        NOT NULL,
  seq     bigint      NOT NULL,
  member  uuid        NOT NULL,
  started integer     NOT NULL DEFAULT 1,
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (feed, seq)
);

CREATE FUNCTION @schema@.suspect(feed_name text, member_id uuid, of_shard smallint, of_seq bigint) RETURNS integer
  LANGUAGE plpgsql
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

-- Replays, and what has become of each message.
CREATE TABLE @schema@.jobs (
  id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created   timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished  timestamptz,
  state     text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
  dead      boolean     NOT NULL,  -- of dead letters; otherwise of the log
  filter    jsonb       NOT NULL,
  rate      integer     NOT NULL DEFAULT 0,
  who       text        NOT NULL,
  why       text        NOT NULL DEFAULT '',
  total     bigint      NOT NULL,
  sent      bigint      NOT NULL DEFAULT 0,  -- handed to the relays
  until_seq bigint      NOT NULL,            -- nothing behind it belongs to the job
  at_feed   text,                            -- how far it has come
  at_seq    bigint
);
CREATE TABLE @schema@.job_results (
  job   bigint      NOT NULL REFERENCES @schema@.jobs ON DELETE CASCADE,
  seq   bigint      NOT NULL,
  id    uuid        NOT NULL,
  error text,                                -- null: delivered
  at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (job, seq)
);

-- Every message that is known, for each feed, in the words that people use for outboxes.
CREATE VIEW @schema@.message_status AS
  SELECT f.feed, m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic, m.tenant_id, m.dedup_key,
         m.shard, m.seq, m.created_at, m.occurred_at, w.status, w.state, coalesce(d.attempts, 0) AS attempts,
         nullif(d.available_at, 'infinity') AS available_at, d.last_error, coalesce(d.status, w.status) AS detail
  FROM @schema@.messages m
  JOIN @schema@.cursors f ON f.base = m.shard AND @schema@.covers(f.tenant, f.others, m.tenant_id)
  LEFT JOIN @schema@.deferred d ON d.feed = f.feed AND d.seq = m.seq
  CROSS JOIN LATERAL (
    SELECT CASE WHEN d.status = 'dead' THEN 'failed' WHEN d.status IS NOT NULL THEN 'pending'
                WHEN @schema@.settled(m.xid, m.seq, f.s1, f.s2, f.last) THEN 'published' ELSE 'pending' END,
           CASE WHEN d.status = 'dead' THEN 'DEAD' WHEN d.attempts > 0 THEN 'FAILED' WHEN d.status IS NOT NULL THEN 'NEW'
                WHEN @schema@.settled(m.xid, m.seq, f.s1, f.s2, f.last) THEN 'SENT' ELSE 'NEW' END) w(status, state)
  UNION ALL
  SELECT d.feed, d.id, d.type, d.aggregate_type, d.aggregate_id, d.key, d.topic, d.tenant_id, d.dedup_key, d.shard, d.seq,
         d.created_at, d.occurred_at, CASE WHEN d.status = 'dead' THEN 'failed' ELSE 'pending' END,
         CASE WHEN d.status = 'dead' THEN 'DEAD' WHEN d.attempts > 0 THEN 'FAILED' ELSE 'NEW' END, d.attempts,
         nullif(d.available_at, 'infinity'), d.last_error, d.status
  FROM @schema@.deferred d
  WHERE NOT EXISTS (SELECT FROM @schema@.messages m WHERE m.shard = d.shard AND m.seq = d.seq);
