-- Acts of operators, and the audit log of them. All of it runs with the owner's rights: producers
-- and relays cannot touch the audit log, and no role can change it.

CREATE OR REPLACE FUNCTION @schema@.record(
  who text, why text, action text, feed text, count bigint, target jsonb, before jsonb DEFAULT NULL, after jsonb DEFAULT NULL)
  RETURNS void
  LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO @schema@.audit (who, why, action, feed, count, target, before, after)
    VALUES (who, why, action, feed, count, target, before, after)
$$;

-- reveal records that a person was shown the content of a message.
CREATE OR REPLACE FUNCTION @schema@.reveal(who text, why text, feed text, id uuid) RETURNS void
  LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT @schema@.record(who, why, 'reveal', feed, 1, jsonb_build_object('id', id))
$$;

-- describe returns what the audit log keeps of a message.
CREATE OR REPLACE FUNCTION @schema@.describe(d @schema@.deferred) RETURNS jsonb
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  payload jsonb;
BEGIN
  BEGIN
    payload := jsonb_build_object('payload', convert_from(d.payload, 'UTF8'));
  EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    payload := jsonb_build_object('payload', encode(d.payload, 'base64'));
  END;
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'id', d.id, 'seq', d.seq, 'type', d.type, 'topic', d.topic, 'key', d.order_key, 'routing_key', d.routing_key,
    'content_type', d.content_type, 'headers', d.headers, 'status', d.status, 'attempts', d.attempts,
    'name', d.name, 'last_error', d.last_error)) || payload;
END
$$;

-- act performs an act on deferred messages, each given by its feed and number, and returns how many
-- it changed. It skips messages whose state no longer allows the act. The "|| ''" hides conditions
-- from the planner, which would otherwise start with all rows of a status. The caller writes the
-- audit record.
CREATE OR REPLACE FUNCTION @schema@.act(act text, feeds text[], seqs bigint[], for_job bigint DEFAULT NULL) RETURNS bigint
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
  allowed   text[] := CASE act WHEN 'retry' THEN ARRAY['dead', 'parked', 'retry', 'held']
                               WHEN 'skip' THEN ARRAY['dead', 'retry', 'held'] WHEN 'park' THEN ARRAY['dead', 'retry', 'held']
                               WHEN 'discard' THEN ARRAY['dead', 'parked'] END;
  f         record;
  of_shards smallint[];
  of_keys   text[];
  touched   bigint := 0;
  done      bigint;
BEGIN
  IF allowed IS NULL THEN
    RAISE EXCEPTION 'there is no act "%"', act USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR f IN SELECT w.feed, array_agg(w.seq) AS seqs, array_agg(DISTINCT d.shard) AS shards
           FROM unnest(feeds, seqs) AS w(feed, seq) JOIN @schema@.deferred d ON d.feed = w.feed AND d.seq = w.seq
           GROUP BY w.feed ORDER BY w.feed
  LOOP
    PERFORM @schema@.lock_deferred(f.feed, f.shards);
    -- The lock prevents changes, so these are the keys that the act may free.
    SELECT array_agg(k.shard), array_agg(k.order_key) INTO of_shards, of_keys
      FROM (SELECT DISTINCT d.shard, d.order_key FROM @schema@.deferred d
            WHERE act <> 'retry' AND d.feed = f.feed AND d.seq = ANY (f.seqs) AND d.status || '' = ANY (allowed) AND d.blocking) k;
    IF act = 'retry' THEN
      UPDATE @schema@.deferred d SET status = 'retry', name = NULL, attempts = 0, available_at = clock_timestamp(), job = coalesce(for_job, d.job)
        WHERE d.feed = f.feed AND d.seq = ANY (f.seqs) AND d.status || '' = ANY (allowed) AND NOT d.bare;
    ELSIF act = 'discard' THEN
      DELETE FROM @schema@.deferred d WHERE d.feed = f.feed AND d.seq = ANY (f.seqs) AND d.status || '' = ANY (allowed);
    ELSE
      UPDATE @schema@.deferred d
        SET status = CASE act WHEN 'skip' THEN 'dead' ELSE 'parked' END, available_at = 'infinity', blocking = false, name = NULL
        WHERE d.feed = f.feed AND d.seq = ANY (f.seqs) AND d.status || '' = ANY (allowed);
    END IF;
    GET DIAGNOSTICS done = ROW_COUNT;
    PERFORM @schema@.promote(f.feed, k.shard, k.key) FROM unnest(of_shards, of_keys) AS k(shard, key);
    touched := touched + done;
  END LOOP;
  RETURN touched;
END
$$;

-- pass_over makes a feed skip a message of the log. It returns null on success. Otherwise it
-- returns why not: 'gone' if the log does not hold the message, 'passed' if the feed has passed it,
-- 'known' if the feed skips it already, and 'many' if too many messages are excluded.
CREATE OR REPLACE FUNCTION @schema@.pass_over(feed_name text, of_shard smallint, of_seq bigint) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
AS $$
DECLARE
  m     record;
  ahead boolean;
BEGIN
  SELECT * INTO m FROM @schema@.messages l WHERE l.seq = of_seq AND l.type <> 'postrider.canary';
  IF m.seq IS NULL THEN
    RETURN 'gone';
  END IF;
  SELECT NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last) INTO ahead FROM @schema@.cursors c
    WHERE c.feed = feed_name AND c.base = of_shard AND @schema@.covers(c.tenant, c.others, m.tenant_id);
  IF ahead IS NOT TRUE THEN
    RETURN 'passed';
  END IF;
  IF (SELECT count(*) FROM @schema@.excluded x WHERE x.feed = feed_name) >= 1000 THEN
    PERFORM @schema@.forget_excluded();
    IF (SELECT count(*) FROM @schema@.excluded x WHERE x.feed = feed_name AND x.seq <> of_seq) >= 1000 THEN
      RETURN 'many';
    END IF;
  END IF;
  INSERT INTO @schema@.excluded (feed, seq, shard, id) VALUES (feed_name, m.seq, of_shard, m.id) ON CONFLICT DO NOTHING;
  RETURN CASE WHEN NOT FOUND THEN 'known' END;
END
$$;

-- act_for performs act and writes the audit record in one transaction. Operators may call this one
-- only.
CREATE OR REPLACE FUNCTION @schema@.act_for(who text, why text, what text, target jsonb, feeds text[], seqs bigint[]) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  was    @schema@.deferred;
  before jsonb;
  after  jsonb;
  done   bigint;
BEGIN
  IF cardinality(seqs) = 1 THEN
    SELECT d.* INTO was FROM @schema@.deferred d WHERE d.feed = feeds[1] AND d.seq = seqs[1];
    before := @schema@.describe(was);
    after := CASE what WHEN 'retry' THEN '{"status": "retry"}' WHEN 'skip' THEN '{"status": "dead"}'
                       WHEN 'park' THEN '{"status": "parked"}' END;
  ELSE
    SELECT jsonb_object_agg(c.status, c.n) INTO before FROM (
      SELECT d.status, count(*) AS n
      FROM unnest(feeds, seqs) AS w(feed, seq) JOIN @schema@.deferred d ON d.feed = w.feed AND d.seq = w.seq GROUP BY 1) c;
  END IF;
  done := @schema@.act(what, feeds, seqs);
  IF done > 0 THEN
    IF was.seq IS NOT NULL AND what IN ('park', 'discard') THEN
      PERFORM @schema@.pass_over(was.feed, was.shard, was.seq);  -- a relay that takes over may read it again
    END IF;
    PERFORM @schema@.record(who, why, what, CASE WHEN feeds[1] = ALL (feeds) THEN feeds[1] END, done, target, before, after);
  END IF;
  RETURN done;
END
$$;

-- exclude parks or discards a message of the log before a feed has passed it. It returns null, or
-- why it did not.
CREATE OR REPLACE FUNCTION @schema@.exclude(who text, why text, what text, feed_name text, of_seq bigint) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  m        record;
  was      @schema@.deferred;
  refuse   text;
  of_shard smallint;
BEGIN
  PERFORM @schema@.check_isolation();
  PERFORM @schema@.check_identity();
  IF what NOT IN ('park', 'discard') THEN
    RAISE EXCEPTION 'a message of the log cannot be excluded by the act "%"', what USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT EXISTS (SELECT FROM @schema@.feeds f WHERE f.name = feed_name) THEN
    RETURN 'feed';
  END IF;
  SELECT @schema@.shard_of(l.key, l.aggregate_type, l.aggregate_id, l.id, @schema@.deferral_shards(feed_name)) INTO of_shard
    FROM @schema@.messages l WHERE l.seq = of_seq;
  PERFORM @schema@.lock_deferred(feed_name, ARRAY[of_shard]);
  IF EXISTS (SELECT FROM @schema@.deferred d WHERE d.feed = feed_name AND d.seq = of_seq) THEN
    RETURN 'deferred';
  END IF;
  refuse := @schema@.pass_over(feed_name, of_shard, of_seq);
  IF refuse IS NOT NULL THEN
    RETURN nullif(refuse, 'known');  -- a client that got no answer repeats the call
  END IF;
  SELECT * INTO m FROM @schema@.messages l WHERE l.seq = of_seq;
  was.id := m.id;
  was.seq := m.seq;
  was.type := m.type;
  was.topic := m.topic;
  was.order_key := @schema@.order_key(m.key, m.aggregate_type, m.aggregate_id);
  was.routing_key := m.routing_key;
  was.content_type := m.content_type;
  was.headers := m.headers;
  was.status := 'pending';
  was.attempts := 0;
  was.payload := m.payload;
  IF what = 'park' THEN
    PERFORM @schema@.resend(feed_name, ARRAY[of_seq], NULL);
    PERFORM @schema@.act('park', ARRAY[feed_name], ARRAY[of_seq]);
  END IF;
  PERFORM @schema@.record(who, why, what, feed_name, 1, jsonb_build_object('id', m.id), @schema@.describe(was),
                          CASE what WHEN 'park' THEN '{"status": "parked"}'::jsonb END);
  RETURN NULL;
END
$$;

-- edit replaces what a destination sees of a message, and schedules it for delivery.
CREATE OR REPLACE FUNCTION @schema@.edit(
  who text, why text, of_feed text, of_id uuid, new_type text, new_topic text, new_routing_key text, new_content_type text,
  new_headers jsonb, new_payload bytea) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  was @schema@.deferred;
  now @schema@.deferred;
BEGIN
  SELECT * INTO was FROM @schema@.deferred d WHERE d.feed = of_feed AND d.id = of_id AND d.status IN ('dead', 'parked')
    ORDER BY d.seq LIMIT 1;
  IF was.seq IS NULL THEN
    RETURN false;
  END IF;
  IF was.bare THEN
    RAISE EXCEPTION 'the content of the message is not here' USING ERRCODE = 'PR007';
  END IF;
  PERFORM @schema@.lock_deferred(of_feed, ARRAY[was.shard]);
  UPDATE @schema@.deferred d
    SET type = new_type, topic = nullif(new_topic, ''), routing_key = nullif(new_routing_key, ''),
        content_type = nullif(new_content_type, ''), headers = new_headers, payload = new_payload
    WHERE d.feed = of_feed AND d.seq = was.seq AND d.status IN ('dead', 'parked')
    RETURNING d.* INTO now;
  IF now.seq IS NULL THEN
    RETURN false;
  END IF;
  PERFORM @schema@.act('retry', ARRAY[of_feed], ARRAY[was.seq]);
  PERFORM @schema@.record(who, why, 'edit', of_feed, 1, jsonb_build_object('id', of_id),
                          @schema@.describe(was), @schema@.describe(now));
  RETURN true;
END
$$;

-- create_feed creates a feed, unless one with that name exists. The feed starts with what is
-- enqueued from now on, with the first message at or after from_time, or else with the oldest
-- message in the log. A feed that starts at a time begins in the middle of a window, as after
-- rewind.
--
-- floor is a floor for this transaction's snapshot, which sees everything up to low; both may be
-- null. The floors of existing feeds are safe for this newer snapshot too. They save the new feed
-- from reading the whole log.
CREATE OR REPLACE FUNCTION @schema@.create_feed(
  who text, why text, feed_name text, from_now boolean, from_time timestamptz, to_destination text, floor bigint, low bigint) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  most  CONSTANT bigint := 100000;
  known record;
  place bigint;
  n     bigint;
BEGIN
  INSERT INTO @schema@.feeds (name, destination) VALUES (feed_name, nullif(to_destination, '')) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF from_time IS NOT NULL THEN
    SELECT p.low INTO place FROM @schema@.place_at(from_time) p;
  END IF;
  SELECT greatest(max(c.lo), floor, 0) AS lo, ARRAY(SELECT greatest(max(c.passed), low, 0) FROM pg_snapshot_xip(pg_current_snapshot())) AS starts
    INTO known FROM @schema@.cursors c WHERE pg_snapshot_xmax(c.s1) > '1';
  INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, s1, lo, starts, s2, lo2, starts2, last, hi)
    SELECT feed_name, s, 0, true, clock_timestamp(), f.s1, f.lo, f.starts, f.s2, f.lo2, f.starts2, f.last, f.hi
    FROM (SELECT generate_series(0, f.shards - 1) FROM @schema@.feeds f WHERE f.name = feed_name) AS l(s)
    CROSS JOIN (
      SELECT pg_current_snapshot() AS s1, known.lo AS lo, known.starts AS starts, NULL::pg_snapshot AS s2, 0 AS lo2, '{}'::bigint[] AS starts2,
             0 AS last, 0 AS hi
        WHERE from_now
      UNION ALL
      SELECT '1:1:', 0, '{}', pg_current_snapshot(), known.lo, known.starts, place - 1, q.last_value FROM @schema@.message_seq q
        WHERE NOT from_now AND place > 1
      UNION ALL
      SELECT '1:1:', 0, '{}', NULL, 0, '{}', 0, 0 WHERE NOT from_now AND (place > 1) IS NOT TRUE) f;
  SELECT p.pending INTO n FROM @schema@.pending(feed_name, most) p;
  PERFORM @schema@.record(who, why, 'feed add', feed_name, n, jsonb_strip_nulls(jsonb_build_object(
    'from', CASE WHEN from_now THEN 'now' ELSE coalesce(from_time::text, 'oldest') END,
    'destination', nullif(to_destination, ''), 'more', CASE WHEN n = most THEN true END)));
  RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.add_feed(
  who text, why text, feed_name text, oldest boolean, floor bigint DEFAULT NULL, low bigint DEFAULT NULL) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM @schema@.check_identity();
  RETURN @schema@.create_feed(who, why, feed_name, NOT oldest, NULL, NULL, floor, low);
END
$$;

-- open_feed is what a relay calls before it serves a feed. It returns null if the relay may.
-- Otherwise it returns why not: the feed does not exist but others do, or its relays send to
-- another destination. The first feed of a log is always created, together with those in beside: if
-- several relays of different feeds start at once, none is refused.
CREATE OR REPLACE FUNCTION @schema@.open_feed(
  feed_name text, who text DEFAULT '', may_create boolean DEFAULT false, from_now boolean DEFAULT false,
  from_time timestamptz DEFAULT NULL, to_destination text DEFAULT NULL, force boolean DEFAULT false,
  beside text[] DEFAULT NULL, floor bigint DEFAULT NULL, low bigint DEFAULT NULL) RETURNS jsonb
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  others text[];
  was    text;
BEGIN
  PERFORM @schema@.check_isolation();
  IF NOT EXISTS (SELECT FROM @schema@.feeds f WHERE f.name = feed_name) THEN
    -- If two relays want to create the first feed, one has to wait.
    PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.feeds', 0));
    SELECT array_agg(f.name ORDER BY f.name) INTO others FROM @schema@.feeds f;
    IF feed_name = ANY (others) IS NOT TRUE THEN
      IF others IS NOT NULL AND NOT may_create THEN
        RETURN jsonb_build_object('feeds', others);
      END IF;
      IF others IS NULL THEN
        PERFORM @schema@.create_feed(who, '', b.name, from_now, from_time, NULL, floor, low) FROM unnest(beside) AS b(name) WHERE b.name <> feed_name;
      END IF;
      IF @schema@.create_feed(who, '', feed_name, from_now, from_time, to_destination, floor, low) THEN
        RETURN NULL;
      END IF;
    END IF;
  END IF;
  IF to_destination <> '' THEN
    SELECT f.destination INTO was FROM @schema@.feeds f WHERE f.name = feed_name FOR UPDATE;
    IF was <> to_destination AND NOT force THEN
      RETURN jsonb_build_object('destination', was);
    END IF;
    IF was IS DISTINCT FROM to_destination THEN
      UPDATE @schema@.feeds f SET destination = to_destination WHERE f.name = feed_name;
      IF was IS NOT NULL THEN
        PERFORM @schema@.record(who, '', 'feed destination', feed_name, 0, NULL,
                                jsonb_build_object('destination', was), jsonb_build_object('destination', to_destination));
      END IF;
    END IF;
  END IF;
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.live_members(feed_name text) RETURNS bigint
  LANGUAGE sql STABLE
AS $$
  SELECT count(*) FROM (SELECT m.member FROM @schema@.members m WHERE m.feed = feed_name AND m.until > clock_timestamp()
                        GROUP BY m.member HAVING NOT bool_or(m.gone)) m
$$;

-- pending counts the messages that a feed has not settled, up to max_rows, and returns when the
-- first of them was enqueued. Above the floor, it uses the index that relays read by.
CREATE OR REPLACE FUNCTION @schema@.pending(feed_name text, max_rows bigint) RETURNS TABLE (pending bigint, oldest timestamptz)
  LANGUAGE sql STABLE
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
  WITH cursors AS MATERIALIZED (SELECT * FROM @schema@.cursors c WHERE c.feed = feed_name)
  SELECT count(*), min(m.created_at) FROM (
    SELECT m.created_at FROM (SELECT min(c.passed) AS passed, min(c.shards) AS shards FROM cursors c) f
    CROSS JOIN LATERAL (
      SELECT m.xid, m.seq, m.created_at, m.type, m.tenant_id, @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, f.shards) AS shard
      FROM @schema@.messages m WHERE m.seq > f.passed) m
    JOIN cursors c ON c.base = m.shard AND @schema@.covers(c.tenant, c.others, m.tenant_id)
    WHERE m.type <> 'postrider.canary' AND NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last)
    LIMIT max_rows) m
$$;

CREATE OR REPLACE FUNCTION @schema@.remove_feed(who text, why text, feed_name text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  deferrals bigint;
BEGIN
  IF @schema@.live_members(feed_name) > 0 THEN
    RAISE EXCEPTION 'relays serve the feed' USING ERRCODE = 'PR005';
  END IF;
  DELETE FROM @schema@.feeds f WHERE f.name = feed_name;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM @schema@.deferred d WHERE d.feed = feed_name;
  GET DIAGNOSTICS deferrals = ROW_COUNT;
  DELETE FROM @schema@.checkpoints c WHERE c.feed = feed_name;
  DELETE FROM @schema@.swept s WHERE s.feed = feed_name;
  DELETE FROM @schema@.slices s WHERE s.feed = feed_name;
  DELETE FROM @schema@.problems p WHERE p.feed = feed_name;
  DELETE FROM @schema@.excluded x WHERE x.feed = feed_name;
  DELETE FROM @schema@.moves v WHERE v.feed = feed_name;
  PERFORM @schema@.record(who, why, 'feed rm', feed_name, deferrals, NULL);
  RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.pause_feed(who text, why text, feed_name text, pause boolean) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  was boolean;
BEGIN
  SELECT f.paused INTO was FROM @schema@.feeds f WHERE f.name = feed_name FOR UPDATE;
  IF was IS NULL THEN
    RETURN false;
  END IF;
  UPDATE @schema@.feeds f SET paused = pause WHERE f.name = feed_name;
  PERFORM @schema@.record(who, why, CASE WHEN pause THEN 'feed pause' ELSE 'feed resume' END, feed_name, 0, NULL,
                          jsonb_build_object('paused', was), jsonb_build_object('paused', pause));
  RETURN true;
END
$$;

-- rewind sets a feed back. It takes over the cursors, as another relay would.
--
-- The new cursor stands in the middle of a window, which goes from an empty snapshot to the
-- snapshot that the old cursor had reached. So everything visible there with a number at or above
-- the target is sent again, and then the feed continues where the old cursor was. What the old
-- cursor had not reached, such as the messages of an in-flight transaction, is unaffected.
CREATE OR REPLACE FUNCTION @schema@.rewind(who text, why text, feed_name text, to_time timestamptz, to_id uuid) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET jit = off
AS $$
DECLARE
  was        record;
  target     bigint;
  place      bigint;
  again      bigint := 0;
  settled    jsonb;
  found_feed boolean := false;
BEGIN
  PERFORM @schema@.check_isolation();
  PERFORM @schema@.check_identity();
  IF to_id IS NOT NULL THEN
    SELECT m.seq INTO target FROM @schema@.messages m WHERE m.id = to_id ORDER BY m.seq LIMIT 1;
    IF target IS NULL THEN
      RAISE EXCEPTION 'the log does not hold the message (any more)' USING ERRCODE = 'PR006';
    END IF;
  ELSE
    -- Sequence numbers and times grow together, except for messages written at nearly the same
    -- time.
    SELECT m.seq INTO target FROM @schema@.place_at(to_time - interval '1 minute') p, @schema@.messages m
      WHERE m.seq >= coalesce(p.low, 0) AND m.created_at >= to_time ORDER BY m.seq LIMIT 1;
  END IF;
  WITH cursors AS MATERIALIZED (SELECT * FROM @schema@.cursors c WHERE c.feed = feed_name)
  SELECT jsonb_object_agg(c.shard, c.n) INTO settled FROM (
    SELECT c.shard, count(*) AS n FROM (
      SELECT m.xid, m.seq, m.tenant_id, @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, f.shards) AS shard
      FROM @schema@.messages m, @schema@.feeds f WHERE f.name = feed_name AND m.seq >= target AND m.type <> 'postrider.canary') m
    JOIN cursors c ON c.base = m.shard AND @schema@.covers(c.tenant, c.others, m.tenant_id) AND @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last)
    GROUP BY 1) c;
  -- Read the cursors again: counting may have taken long, and relays have settled more in the
  -- meantime.
  FOR was IN SELECT c.*, (settled ->> c.shard::text)::bigint AS messages FROM @schema@.cursors c WHERE c.feed = feed_name ORDER BY c.shard LOOP
    found_feed := true;
    CONTINUE WHEN was.messages IS NULL;
    place := target;
    -- Keep an open window: without it, messages settled in it would be sent again too. The position
    -- must not move forward.
    IF was.s2 IS NULL THEN
      was.s2 := was.s1;
      was.lo2 := was.lo;
      was.starts2 := was.starts;
    ELSE
      place := least(place, was.last + 1);
    END IF;
    INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, s1, lo, starts, s2, lo2, starts2, last, hi)
      SELECT feed_name, was.shard, was.n + 1, true, clock_timestamp(), '1:1:', 0, '{}', was.s2, was.lo2, was.starts2, place - 1, q.last_value
      FROM @schema@.message_seq q;
    again := again + was.messages;
  END LOOP;
  IF NOT found_feed THEN
    RETURN NULL;
  END IF;
  PERFORM @schema@.record(who, why, 'feed rewind', feed_name, again,
                          jsonb_strip_nulls(jsonb_build_object('time', to_time, 'message', to_id)));
  RETURN again;
END
$$;

-- resend defers messages of the log once more, so that relays send them again, and returns how
-- many. It skips those that are already deferred, unless their content is missing.
CREATE OR REPLACE FUNCTION @schema@.resend(feed_name text, seqs bigint[], for_job bigint) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
DECLARE
  done bigint;
  into_shards smallint := @schema@.deferral_shards(feed_name);
BEGIN
  DELETE FROM @schema@.deferred d WHERE d.feed = feed_name AND d.seq = ANY (seqs) AND d.bare
    AND EXISTS (SELECT FROM @schema@.messages m WHERE m.seq = d.seq);
  INSERT INTO @schema@.deferred (
    feed, seq, shard, status, blocking, available_at, job, order_key, priority, id, type, aggregate_type, aggregate_id, key,
    topic, routing_key, tenant_id, content_type, schema_version, schema_id, dedup_key, correlation_id, causation_id,
    created_at, occurred_at, headers, payload)
  SELECT feed_name, m.seq, @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, into_shards), 'retry', false, clock_timestamp(), for_job,
         @schema@.order_key(m.key, m.aggregate_type, m.aggregate_id), coalesce(m.priority, 0), m.id, m.type, m.aggregate_type,
         m.aggregate_id, m.key, m.topic, m.routing_key, m.tenant_id, m.content_type, m.schema_version, m.schema_id,
         m.dedup_key, m.correlation_id, m.causation_id, m.created_at, coalesce(m.occurred_at, m.created_at), m.headers,
         m.payload
  FROM unnest(seqs) s(seq) JOIN @schema@.messages m ON m.seq = s.seq
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.start_replay(
  who text, why text, of_dead boolean, wanted jsonb, at_rate integer, messages bigint, up_to bigint) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  number bigint;
BEGIN
  INSERT INTO @schema@.jobs (dead, filter, rate, who, why, total, until_seq)
    VALUES (of_dead, wanted, at_rate, start_replay.who, start_replay.why, messages, up_to) RETURNING id INTO number;
  PERFORM @schema@.record(who, why, 'replay', wanted ->> 'feed', messages,
                          jsonb_build_object('job', number, 'filter', wanted, 'dead', of_dead, 'rate', at_rate));
  RETURN number;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.set_replay(who text, why text, job_id bigint, new_state text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  before text;
BEGIN
  SELECT j.state INTO before FROM @schema@.jobs j WHERE j.id = job_id AND j.state IN ('running', 'paused') FOR NO KEY UPDATE;
  IF before <> new_state THEN  -- a client that got no answer repeats the call, which must not be recorded twice
    UPDATE @schema@.jobs j SET state = new_state, finished = CASE WHEN new_state = 'cancelled' THEN clock_timestamp() END WHERE j.id = job_id;
    PERFORM @schema@.record(who, why, 'replay ' || new_state, NULL, 0, jsonb_build_object('job', job_id));
  END IF;
  RETURN before IS NOT NULL;
END
$$;

-- claim_replay returns a job and locks it for a runner that hands its messages to the relays: only
-- one can until the transaction ends. Relays can still report results.
CREATE OR REPLACE FUNCTION @schema@.claim_replay(job_id bigint) RETURNS @schema@.jobs
  LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT * FROM @schema@.jobs j WHERE j.id = job_id FOR NO KEY UPDATE
$$;

-- step_replay hands messages of a job to the relays, and records the job's position. A job of the
-- log that has not found all of its messages ends as cancelled, not done, because the log was
-- emptied in the meantime: operators must see that some were not sent again.
CREATE OR REPLACE FUNCTION @schema@.step_replay(job_id bigint, feeds text[], seqs bigint[], at_end boolean) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  job  @schema@.jobs := @schema@.claim_replay(job_id);
  done bigint := 0;
  lost bigint := 0;
BEGIN
  IF job.state IS DISTINCT FROM 'running' THEN
    RETURN;
  END IF;
  job.seen := job.seen + coalesce(cardinality(seqs), 0);
  IF cardinality(seqs) > 0 THEN
    done := CASE WHEN job.dead THEN @schema@.act('retry', feeds, seqs, job_id) ELSE @schema@.resend(job.filter ->> 'feed', seqs, job_id) END;
    job.at_feed := feeds[cardinality(feeds)];
    job.at_seq := seqs[cardinality(seqs)];
  END IF;
  IF at_end AND NOT job.dead THEN
    lost := greatest(job.total - job.seen, 0);
  END IF;
  UPDATE @schema@.jobs j SET sent = j.sent + done, seen = job.seen, missing = lost, at_feed = job.at_feed, at_seq = job.at_seq,
      state = CASE WHEN lost > 0 THEN 'cancelled' WHEN at_end THEN 'done' ELSE j.state END, finished = CASE WHEN at_end THEN clock_timestamp() END
    WHERE j.id = job_id;
  IF lost > 0 THEN
    PERFORM @schema@.record('postrider', 'messages are not in the log any more', 'replay cancelled', job.filter ->> 'feed', lost, jsonb_build_object('job', job_id));
  END IF;
END
$$;
REVOKE ALL ON FUNCTION
  @schema@.record(text, text, text, text, bigint, jsonb, jsonb, jsonb), @schema@.reveal(text, text, text, uuid),
  @schema@.act(text, text[], bigint[], bigint),
  @schema@.act_for(text, text, text, jsonb, text[], bigint[]), @schema@.pass_over(text, smallint, bigint),
  @schema@.exclude(text, text, text, text, bigint),
  @schema@.edit(text, text, text, uuid, text, text, text, text, jsonb, bytea), @schema@.add_feed(text, text, text, boolean, bigint, bigint),
  @schema@.create_feed(text, text, text, boolean, timestamptz, text, bigint, bigint),
  @schema@.open_feed(text, text, boolean, boolean, timestamptz, text, boolean, text[], bigint, bigint),
  @schema@.remove_feed(text, text, text), @schema@.pause_feed(text, text, text, boolean),
  @schema@.rewind(text, text, text, timestamptz, uuid), @schema@.resend(text, bigint[], bigint),
  @schema@.start_replay(text, text, boolean, jsonb, integer, bigint, bigint), @schema@.set_replay(text, text, bigint, text),
  @schema@.claim_replay(bigint), @schema@.step_replay(bigint, text[], bigint[], boolean)
  FROM PUBLIC;
