-- Functions for consumers: they claim what they receive, defer it, and forget it.

-- inbox_window returns how long consumers remember messages, at least.
CREATE OR REPLACE FUNCTION @schema@.inbox_window() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN make_interval(secs => 7 * @schema@.inbox_seconds());

-- inbox_period returns the period in which an ID was created, or null if the ID has no time.
CREATE OR REPLACE FUNCTION @schema@.inbox_period(id uuid) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN substr(id::text, 15, 1) = '7'
    THEN ('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint / (@schema@.inbox_seconds() * 1000::bigint) END;

-- open_inbox registers a consumer, and returns its number and the window in seconds.
CREATE OR REPLACE FUNCTION @schema@.open_inbox(consumer_name text, OUT number integer, OUT seconds double precision)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  seconds := date_part('epoch', @schema@.inbox_window());
  SELECT c.n INTO number FROM @schema@.consumers c WHERE c.name = consumer_name;
  IF number IS NULL THEN
    INSERT INTO @schema@.consumers (name) VALUES (consumer_name) ON CONFLICT (name) DO UPDATE SET name = excluded.name
      RETURNING n INTO number;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION @schema@.open_inbox(text) FROM PUBLIC;

-- heard is the heartbeat of a process that works for a consumer. Processes call it every ten
-- seconds. After a minute without it, the consumer counts as gone.
CREATE OR REPLACE FUNCTION @schema@.heard(consumer_name text, process_name text) RETURNS void
  LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO @schema@.consumer_heard AS h (consumer, at, process)
    SELECT c.n, clock_timestamp(), left(process_name, 200) FROM @schema@.consumers c WHERE c.name = consumer_name
  ON CONFLICT (consumer) DO UPDATE SET at = greatest(h.at, excluded.at), process = excluded.process
$$;
REVOKE ALL ON FUNCTION @schema@.heard(text, text) FROM PUBLIC;

-- find_old looks up a message that is too old for the ring: r if it was received, l if its receipt
-- may be forgotten, f if it was not received.
CREATE OR REPLACE FUNCTION @schema@.find_old(consumer_number integer, message_id uuid, made_in bigint) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  c    record;
  rows bigint;
BEGIN
  SELECT first_period INTO c FROM @schema@.consumers WHERE n = consumer_number;
  IF made_in >= c.first_period THEN
    -- Its row may still be in the ring, or a transaction that is still open may be writing it: the
    -- insert waits for that. From now on the slot cannot be emptied before this transaction ends.
    -- So read what was forgotten after this, not before.
    INSERT INTO @schema@.inbox (consumer, slot, id) VALUES (consumer_number, made_in % 10, message_id) ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS rows = ROW_COUNT;
    IF rows = 0 THEN
      RETURN 'r';
    END IF;
    DELETE FROM @schema@.inbox x WHERE x.consumer = consumer_number AND x.id = message_id AND x.slot = made_in % 10;
  END IF;
  IF current_setting('transaction_isolation') = 'read committed' THEN
    SELECT * INTO c FROM @schema@.consumers WHERE n = consumer_number;
  ELSE
    SELECT * INTO c FROM @schema@.consumers WHERE n = consumer_number FOR SHARE;  -- fails if the row has changed since the snapshot
  END IF;
  RETURN CASE WHEN made_in <= CASE WHEN made_in >= c.first_period THEN c.forgotten ELSE c.history_forgotten END THEN 'l' ELSE 'f' END;
END
$$;

-- claim claims messages for a consumer, in the caller's transaction. Clients first try a plain
-- insert into the slot, unless the consumer is in inbox_trouble, and call claim if the insert does
-- not settle the matter. The IDs must be sorted, so that two callers cannot deadlock. Each ID gets
-- a letter:
--   f  fresh: the caller handles it
--   r  repeated: it is handled or deferred already
--   w  waiting: an earlier message of its key is deferred. It is not claimed.
--   l  late: the consumer has forgotten messages of its time, so it may be repeated. It is not claimed,
--      unless accept_late is set.
--   a  ahead: its ID is from the future. It is not claimed, unless accept_late is set.
-- A claim waits for the end of any open transaction that has claimed the same message.
CREATE OR REPLACE FUNCTION @schema@.claim(consumer_number integer, feed_name text, ids uuid[], keys text[], accept_late boolean) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  current  bigint := floor(date_part('epoch', clock_timestamp()) / @schema@.inbox_seconds());
  letters  text := '';
  letter   text;
  period   bigint;
  oldest   bigint;
  rows     bigint;
  stray    boolean;
BEGIN
  FOR i IN 1 .. cardinality(ids) LOOP
    period := @schema@.inbox_period(ids[i]);
    stray := period IS NULL OR period NOT BETWEEN current - 7 AND current + 1;
    letter := CASE WHEN period > current + 1 THEN 'a' ELSE 'f' END;
    IF EXISTS (SELECT FROM @schema@.inbox_strays s WHERE s.consumer = consumer_number AND s.id = ids[i]) THEN
      letter := 'r';
    ELSIF period < current - 7 THEN
      letter := @schema@.find_old(consumer_number, ids[i], period);
    END IF;
    IF letter = 'r' THEN
      letters := letters || letter;
      CONTINUE;
    END IF;
    IF keys[i] IS NOT NULL AND (letter = 'f' OR accept_late) AND EXISTS (
         SELECT FROM @schema@.deferred d WHERE d.feed = feed_name AND d.shard = 0 AND d.order_key = keys[i] AND d.blocking
           AND hashtextextended(d.order_key, 0) = hashtextextended(keys[i], 0)) THEN
      letter := 'w';
    END IF;
    IF letter = 'f' AND NOT stray THEN
      INSERT INTO @schema@.inbox (consumer, slot, id) VALUES (consumer_number, period % 10, ids[i]) ON CONFLICT DO NOTHING;
      GET DIAGNOSTICS rows = ROW_COUNT;
      IF rows = 0 THEN
        letter := 'r';
      END IF;
      oldest := least(oldest, period);
    ELSIF letter <> 'f' AND EXISTS (SELECT FROM @schema@.deferred d WHERE d.id = ids[i] AND d.feed = feed_name) THEN
      letter := 'r'; -- deferred before the window
    ELSIF letter = 'f' OR letter IN ('l', 'a') AND accept_late THEN
      INSERT INTO @schema@.inbox_strays (consumer, id, ahead) VALUES (consumer_number, ids[i], letter = 'a') ON CONFLICT DO NOTHING;
      GET DIAGNOSTICS rows = ROW_COUNT;
      IF letter = 'a' THEN
        PERFORM @schema@.lock_deferred(feed_name, ARRAY[0]::smallint[]);
        INSERT INTO @schema@.inbox_trouble VALUES (consumer_number) ON CONFLICT DO NOTHING;
      END IF;
      letter := CASE WHEN rows = 0 THEN 'r' ELSE 'f' END;
    ELSIF letter = 'w' AND EXISTS (
            SELECT FROM @schema@.inbox x WHERE x.consumer = consumer_number AND x.id = ids[i] AND x.slot = period % 10) THEN
      letter := 'r';
    END IF;
    letters := letters || letter;
  END LOOP;
  -- If a claim has waited so long that its slot left the window, an older claim may have been swept
  -- in the meantime.
  IF oldest < floor(date_part('epoch', clock_timestamp()) / @schema@.inbox_seconds()) - 7 THEN
    RAISE EXCEPTION 'the inbox''s window has moved on' USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN letters;
END
$$;
REVOKE ALL ON FUNCTION @schema@.claim(integer, text, uuid[], text[], boolean) FROM PUBLIC;

-- inbox_defer claims a message and defers it, in one step. All that a consumer defers is in shard 0
-- of a feed of its own, which no relay serves. If the message is handled or deferred already,
-- nothing happens. It returns false if the message was to wait and nothing blocks its key any more.
CREATE OR REPLACE FUNCTION @schema@.inbox_defer(
  consumer_number integer, feed_name text, message json, body bytea, want text, blocks boolean, tries integer,
  delay double precision, cause text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  m       record;
  the_key text;
  current bigint;
  period  bigint;
  rows    bigint;
  blocked boolean;
BEGIN
  PERFORM @schema@.check_isolation();
  PERFORM @schema@.lock_deferred(feed_name, ARRAY[0]::smallint[]);
  current := floor(date_part('epoch', clock_timestamp()) / @schema@.inbox_seconds());
  SELECT * INTO m FROM json_to_record(message) AS x(
    id uuid, type text, aggregate_type text, aggregate_id text, key text, topic text, routing_key text, tenant_id text,
    content_type text, schema_version integer, schema_id text, dedup_key text, occurred_at timestamptz,
    correlation_id text, causation_id text, headers jsonb);
  the_key := coalesce(m.key, m.aggregate_type || '/' || m.aggregate_id);
  blocked := EXISTS (SELECT FROM @schema@.deferred d
                     WHERE d.feed = feed_name AND d.shard = 0 AND d.order_key = the_key AND d.blocking
                       AND hashtextextended(d.order_key, 0) = hashtextextended(the_key, 0));
  IF want = 'waiting' AND NOT blocked THEN
    RETURN false;
  END IF;
  period := @schema@.inbox_period(m.id);
  IF EXISTS (SELECT FROM @schema@.inbox_strays s WHERE s.consumer = consumer_number AND s.id = m.id)
     OR EXISTS (SELECT FROM @schema@.deferred d WHERE d.id = m.id AND d.feed = feed_name) THEN
    RETURN true;
  ELSIF period < current - 7 AND @schema@.find_old(consumer_number, m.id, period) = 'r' THEN
    RETURN true;
  ELSIF period BETWEEN current - 7 AND current + 1 THEN
    INSERT INTO @schema@.inbox (consumer, slot, id) VALUES (consumer_number, period % 10, m.id) ON CONFLICT DO NOTHING;
  ELSE
    INSERT INTO @schema@.inbox_strays (consumer, id, ahead) VALUES (consumer_number, m.id, coalesce(period > current, false))
      ON CONFLICT DO NOTHING;
  END IF;
  GET DIAGNOSTICS rows = ROW_COUNT;
  IF rows = 0 THEN
    RETURN true;
  END IF;
  INSERT INTO @schema@.inbox_trouble VALUES (consumer_number) ON CONFLICT DO NOTHING;
  -- A message that fails while its key is blocked, for instance by a message that another process
  -- received, waits like the others.
  IF blocked AND blocks AND want = 'retry' THEN
    want := 'waiting';
  END IF;
  INSERT INTO @schema@.deferred (
    feed, seq, shard, status, blocking, attempts, available_at, tried_at, last_error, order_key, priority, id, type,
    aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id, dedup_key,
    correlation_id, causation_id, created_at, occurred_at, headers, payload)
  VALUES (
    feed_name, nextval('@schema@.message_seq'), 0, want, blocks AND the_key IS NOT NULL, tries,
    CASE want WHEN 'retry' THEN clock_timestamp() + make_interval(secs => delay) ELSE 'infinity' END,
    CASE WHEN want IN ('retry', 'dead') THEN clock_timestamp() END, nullif(cause, ''), the_key, 0, m.id, m.type,
    m.aggregate_type, m.aggregate_id, m.key, m.topic, m.routing_key, m.tenant_id, m.content_type, m.schema_version, m.schema_id,
    m.dedup_key, m.correlation_id, m.causation_id, clock_timestamp(), coalesce(m.occurred_at, clock_timestamp()), m.headers, body);
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION @schema@.inbox_defer(integer, text, json, bytea, text, boolean, integer, double precision, text) FROM PUBLIC;

-- take_due takes one message that is due. It belongs to the caller until the end of the
-- transaction. Operators can still act on it: see inbox_conclude.
CREATE OR REPLACE FUNCTION @schema@.take_due(feed_name text) RETURNS SETOF @schema@.deferred
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  due record;
BEGIN
  FOR due IN
    SELECT d.seq FROM @schema@.deferred d
    WHERE d.feed = feed_name AND d.shard = 0 AND d.available_at <= clock_timestamp() AND d.available_at < 'infinity'
    ORDER BY d.priority DESC, d.available_at, d.seq LIMIT 100
  LOOP
    IF pg_try_advisory_xact_lock(hashtextextended('@schema@.due/' || feed_name, due.seq)) THEN
      RETURN QUERY SELECT * FROM @schema@.deferred d
        WHERE d.feed = feed_name AND d.seq = due.seq AND d.available_at <= clock_timestamp();
      IF FOUND THEN
        RETURN;
      END IF;
    END IF;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION @schema@.take_due(text) FROM PUBLIC;

-- next_due returns the milliseconds until a message is due, at most a day, or null if there is
-- none. It ignores what was due when the transaction began: another process has taken that.
CREATE OR REPLACE FUNCTION @schema@.next_due(feed_name text) RETURNS bigint
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
AS $$
  SELECT ceil(date_part('epoch', least(d.available_at, clock_timestamp() + interval '1 day') - clock_timestamp()) * 1000)::bigint
  FROM @schema@.deferred d WHERE d.feed = feed_name AND d.shard = 0 AND d.available_at > now() AND d.available_at < 'infinity'
  ORDER BY d.available_at LIMIT 1
$$;
REVOKE ALL ON FUNCTION @schema@.next_due(text) FROM PUBLIC;

-- end_trouble removes a consumer from inbox_trouble if a plain insert is enough again. The caller
-- holds the lock.
CREATE OR REPLACE FUNCTION @schema@.end_trouble(feed_name text) RETURNS void
  LANGUAGE sql
  SET enable_seqscan = off
  SET enable_bitmapscan = off
AS $$
  DELETE FROM @schema@.inbox_trouble t USING @schema@.consumers c
  WHERE c.name = substr(feed_name, 7) AND t.consumer = c.n
    AND NOT EXISTS (SELECT FROM @schema@.deferred d WHERE d.feed = feed_name AND d.shard = 0 AND d.blocking)
    AND NOT EXISTS (SELECT FROM @schema@.inbox_strays s WHERE s.consumer = c.n AND s.ahead)
$$;

-- inbox_conclude ends the attempt at a message that was taken: it deletes the message if it was
-- delivered, and otherwise records the failure. due_since is the available_at, in microseconds,
-- with which the message was taken. If that has changed, an operator has acted on the message:
-- inbox_conclude then does nothing and returns false.
CREATE OR REPLACE FUNCTION @schema@.inbox_conclude(
  feed_name text, of_seq bigint, due_since bigint, delivered boolean, status text, tries integer, delay double precision, cause text)
  RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
BEGIN
  PERFORM @schema@.check_isolation();
  PERFORM @schema@.lock_deferred(feed_name, ARRAY[0]::smallint[]);
  PERFORM FROM @schema@.deferred d WHERE d.feed = feed_name AND d.seq = of_seq AND d.available_at < 'infinity'
    AND extract(epoch FROM d.available_at) * 1000000 = due_since;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM @schema@.end_attempts(feed_name, ARRAY[of_seq], ARRAY[delivered], ARRAY[status], ARRAY[tries], ARRAY[delay], ARRAY[cause]);
  IF delivered THEN
    PERFORM @schema@.end_trouble(feed_name);
  END IF;
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION @schema@.inbox_conclude(text, bigint, bigint, boolean, text, integer, double precision, text) FROM PUBLIC;

-- sweep_strays deletes up to 10,000 strays that were received before the window, and returns how
-- many. It keeps those of deferred messages.
CREATE OR REPLACE FUNCTION @schema@.sweep_strays() RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET jit = off
AS $$
DECLARE
  current bigint := floor(date_part('epoch', clock_timestamp()) / @schema@.inbox_seconds());
  removed bigint;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.sweep_inbox', 0)) THEN
    RETURN 0;
  END IF;
  WITH gone AS (
    DELETE FROM @schema@.inbox_strays s WHERE (s.consumer, s.id) IN (
      SELECT x.consumer, x.id FROM @schema@.inbox_strays x
      WHERE x.at < clock_timestamp() - @schema@.inbox_window() AND NOT EXISTS (
        SELECT FROM @schema@.consumers c JOIN @schema@.deferred d ON d.feed = 'inbox/' || c.name WHERE c.n = x.consumer AND d.id = x.id)
      ORDER BY x.at LIMIT 10000 FOR UPDATE SKIP LOCKED)
    RETURNING s.consumer, @schema@.inbox_period(s.id) AS period
  ), latest AS (
    SELECT c.n, max(g.period) FILTER (WHERE g.period >= c.first_period) AS since, max(g.period) FILTER (WHERE g.period < c.first_period) AS before
    FROM gone g JOIN @schema@.consumers c ON c.n = g.consumer WHERE g.period < current - 7 GROUP BY c.n
  ), noted AS (
    UPDATE @schema@.consumers c SET forgotten = greatest(c.forgotten, l.since), history_forgotten = greatest(c.history_forgotten, l.before)
    FROM latest l WHERE c.n = l.n
  )
  SELECT count(*) INTO removed FROM gone;
  RETURN removed;
END
$$;
REVOKE ALL ON FUNCTION @schema@.sweep_strays() FROM PUBLIC;

-- sweep_inbox empties the slot that has left the window. As in reclaim, the lock timeout keeps
-- others from queueing behind it. A client that read the clock just before a period ended may still
-- be about to claim in the slot that left the window, so sweep_inbox waits for a minute after the
-- start of a period.
CREATE OR REPLACE FUNCTION @schema@.sweep_inbox() RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET lock_timeout = '20ms'
  SET enable_seqscan = off
  SET jit = off
AS $$
DECLARE
  moment   double precision := date_part('epoch', clock_timestamp());
  slot     bigint := (floor(moment / @schema@.inbox_seconds())::bigint + 2) % 10;
  filled   boolean;
  troubled record;
BEGIN
  PERFORM @schema@.check_isolation();
  BEGIN
    FOR troubled IN SELECT 'inbox/' || c.name AS feed FROM @schema@.inbox_trouble t JOIN @schema@.consumers c ON c.n = t.consumer ORDER BY 1 LOOP
      PERFORM @schema@.lock_deferred(troubled.feed, ARRAY[0]::smallint[]);
      PERFORM @schema@.end_trouble(troubled.feed);
    END LOOP;
  EXCEPTION WHEN lock_not_available THEN
    NULL;  -- the next sweep does it
  END;
  IF floor(moment / @schema@.inbox_seconds()) <> floor((moment - least(60, @schema@.inbox_seconds() / 2.0)) / @schema@.inbox_seconds())
     OR NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.sweep_inbox', 0)) THEN
    RETURN false;
  END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM @schema@.%I)', 'inbox_' || slot) INTO filled;
  IF NOT filled THEN
    RETURN false;
  END IF;
  BEGIN
    EXECUTE format('LOCK TABLE @schema@.%I IN ACCESS EXCLUSIVE MODE', 'inbox_' || slot);
  EXCEPTION WHEN lock_not_available THEN
    RETURN false;
  END;
  -- Check again: the lock may have taken until the next period.
  IF slot <> (floor(date_part('epoch', clock_timestamp()) / @schema@.inbox_seconds())::bigint + 2) % 10 THEN
    RETURN false;
  END IF;
  -- Record that a consumer which received something in this period has forgotten it. One that
  -- received nothing, because it was stopped for long, can still accept messages of the period.
  BEGIN
    EXECUTE format('UPDATE @schema@.consumers c SET forgotten = greatest(c.forgotten, $1)
      WHERE EXISTS (SELECT FROM @schema@.%I i WHERE i.consumer = c.n)', 'inbox_' || slot) USING floor(moment / @schema@.inbox_seconds())::bigint - 8;
  EXCEPTION WHEN lock_not_available THEN
    RETURN false;
  END;
  EXECUTE format('TRUNCATE @schema@.%I', 'inbox_' || slot);
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION @schema@.sweep_inbox() FROM PUBLIC;

-- message_identity returns the ID by which consumers recognise a message that its sender, the
-- source, calls id. It is the same as codec.Identity in Go. A UUID without a source, or from
-- Postrider itself, is returned unchanged.
CREATE OR REPLACE FUNCTION @schema@.message_identity(source text, id text) RETURNS uuid
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  is_uuid boolean := id ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$';
  origin  text := coalesce(source, '');
  sum     text;
BEGIN
  IF is_uuid AND origin IN ('', 'postrider') THEN
    RETURN id::uuid;
  END IF;
  sum := encode(sha256(convert_to(octet_length(convert_to(origin, 'UTF8')) || ':' || origin || id, 'UTF8')), 'hex');
  IF is_uuid AND substr(id, 15, 1) = '7' THEN
    sum := overlay(overlay(sum PLACING replace(left(id, 13), '-', '') FROM 1 FOR 12) PLACING '7' FROM 13);
  ELSE
    sum := overlay(sum PLACING '8' FROM 13);
  END IF;
  RETURN overlay(left(sum, 32) PLACING substr('89ab', ('x' || substr(sum, 17, 1))::bit(4)::integer % 4 + 1, 1) FROM 17)::uuid;
END
$$;

-- receive is for any language, as the first statement of a transaction: SELECT
-- postrider.receive('billing', 'ID'). If it returns false, the message was handled before.
CREATE OR REPLACE FUNCTION @schema@.receive(consumer_name text, message_id uuid) RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  letter text;
BEGIN
  letter := @schema@.claim((@schema@.open_inbox(consumer_name)).number, 'inbox/' || consumer_name, ARRAY[message_id], ARRAY[NULL::text], false);
  IF letter IN ('l', 'a') THEN
    RAISE EXCEPTION 'message % is outside of the inbox''s window of %', message_id, @schema@.inbox_window() USING ERRCODE = 'PR007';
  END IF;
  RETURN letter = 'f';
END
$$;

-- The same for IDs of any form: SELECT postrider.receive('billing', 'order-7', '/shop'). The source
-- is that of the CloudEvent or, for senders that set none, the topic or queue.
CREATE OR REPLACE FUNCTION @schema@.receive(consumer_name text, message_id text, source text DEFAULT NULL) RETURNS boolean
  LANGUAGE plpgsql
AS $$
BEGIN
  IF message_id IS NULL OR message_id = '' THEN
    RAISE EXCEPTION 'the message has no ID: pass where it stands, such as ''@0/42'', and its topic' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  RETURN @schema@.receive(consumer_name, @schema@.message_identity(source, message_id));
END
$$;
