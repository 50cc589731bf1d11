-- Retention empties slots of the ring with TRUNCATE. Rebase follows a change of database.

-- slot_passed reports whether every feed has delivered everything in a slot to which nothing is
-- written. It checks that nothing in the slot lies above the floor of a cursor, and that no
-- transaction that has ended since the cursor's snapshot can have messages in it. A transaction
-- that is still in flight has none: it would hold a lock. Whatever the size of the slot, this takes
-- one index descent. The slot must not hold the only content of a dead letter either.
CREATE OR REPLACE FUNCTION @schema@.slot_passed(slot integer) RETURNS boolean
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  newest  bigint;
  waiting boolean;
BEGIN
  EXECUTE format('SELECT seq FROM @schema@.%I ORDER BY seq DESC LIMIT 1', 'messages_' || slot) INTO newest;
  newest := coalesce(newest, 0);
  SELECT bool_or(newest > c.lo OR EXISTS (
      SELECT FROM pg_snapshot_xip(c.s1) WITH ORDINALITY AS x(xid, nth)
      WHERE newest > coalesce(c.starts[x.nth], 0) AND pg_visible_in_snapshot(x.xid, pg_current_snapshot())))
    INTO waiting FROM @schema@.cursors c;
  IF waiting IS NULL THEN
    RETURN false;  -- no feed at all: the first one will deliver everything
  END IF;
  IF NOT waiting THEN
    EXECUTE format('SELECT EXISTS (
        SELECT FROM @schema@.deferred d CROSS JOIN LATERAL (
          SELECT FROM @schema@.%I m WHERE m.seq = d.seq LIMIT 1) m WHERE d.bare)', 'messages_' || slot)
      INTO waiting;
  END IF;
  RETURN NOT waiting;
END
$$;

-- check_isolation refuses other levels than READ COMMITTED: a function that reads the log under a
-- lock must see what was committed before it got the lock, not before its transaction began.
CREATE OR REPLACE FUNCTION @schema@.check_isolation() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'this works only in a READ COMMITTED transaction' USING ERRCODE = 'active_sql_transaction';
  END IF;
END
$$;

-- reclaim empties the slot that will be written next, if every feed has passed all of it. Otherwise
-- the slot is written a second time: the log grows, and loses nothing. If the log is larger than
-- most bytes, delivered messages are not kept for the retention period: then reclaim also empties
-- other slots that every feed has passed, oldest first, but never the one being written. Each call
-- empties one slot. The lock keeps out writers that began during the slot's last turn. The short
-- timeout keeps writers and readers from queueing behind reclaim.
CREATE OR REPLACE FUNCTION @schema@.reclaim(most bigint DEFAULT NULL) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET lock_timeout = '20ms'
  SET enable_seqscan = off
  SET jit = off
AS $$
DECLARE
  current integer := @schema@.slot_at(clock_timestamp());
  last    integer := 1;  -- how many slots after the current one are candidates
  slot    integer;
  filled  boolean;
BEGIN
  PERFORM @schema@.check_isolation();
  -- In a foreign database the cursors mean nothing: what producers have written here may look
  -- settled by chance.
  IF NOT @schema@.at_home() THEN
    RETURN false;
  END IF;
  -- One at a time: two callers that have read the slot would block each other's lock.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.reclaim', 0)) THEN
    RETURN false;
  END IF;
  IF most < (SELECT sum(pg_total_relation_size(i.inhrelid)) FROM pg_inherits i WHERE i.inhparent = '@schema@.messages'::regclass) THEN
    last := @schema@.slot_count() - 1;
  END IF;
  FOR slot IN SELECT (current + distance) % @schema@.slot_count() FROM generate_series(1, last) distance
              UNION ALL SELECT s FROM generate_series(@schema@.slot_count()::integer, 127) s  -- slots that a larger ring has left
                        WHERE to_regclass(format('@schema@.%I', 'messages_' || s)) IS NOT NULL
  LOOP
    -- Its turn comes too soon: the next writers would have to wait for the lock.
    CONTINUE WHEN @schema@.slot_at(clock_timestamp() + interval '500 milliseconds') = slot;
    EXECUTE format('SELECT EXISTS (SELECT FROM @schema@.%I)', 'messages_' || slot) INTO filled;
    CONTINUE WHEN NOT filled OR NOT @schema@.slot_passed(slot);
    BEGIN
      EXECUTE format('LOCK TABLE @schema@.%I IN ACCESS EXCLUSIVE MODE', 'messages_' || slot);
    EXCEPTION WHEN lock_not_available THEN
      CONTINUE;
    END;
    IF NOT @schema@.slot_passed(slot) THEN
      RETURN false;  -- do not lock a second slot in this transaction
    END IF;
    EXECUTE format('TRUNCATE @schema@.%I', 'messages_' || slot);
    RETURN true;
  END LOOP;
  RETURN false;
END
$$;
REVOKE ALL ON FUNCTION @schema@.reclaim(bigint) FROM PUBLIC;

-- sweep deletes ledger rows that are ten minutes old and have a newer row, members that have been
-- gone for long, expired dedup keys, old problems and replays that are over, and exclusions of
-- messages that were passed. It deletes at most about 10,000 rows of each table, so that no call
-- takes long, and returns whether there are more. It does not look at ledger rows that stay,
-- because the rows of a shard age in order. The lock serializes sweeps, because two would wait for
-- each other's rows.
CREATE OR REPLACE FUNCTION @schema@.sweep() RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  chunk  CONSTANT integer := 10000;
  more   boolean := false;
  gone   bigint;
  total  bigint := 0;
  head   record;
  first  bigint;
  stays  bigint;
  expiry timestamptz := clock_timestamp() - @schema@.dedup_window();
  oldest timestamptz;
  old    bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.sweep', 0)) THEN
    RETURN false;
  END IF;

  FOR head IN SELECT c.feed, c.shard, c.n, coalesce((SELECT s.n FROM @schema@.swept s WHERE s.feed = c.feed AND s.shard = c.shard), 0) AS place
              FROM @schema@.cursors c LOOP
    SELECT k.n INTO first FROM @schema@.checkpoints k
      WHERE k.feed = head.feed AND k.shard = head.shard AND k.n >= head.place ORDER BY k.n LIMIT 1;
    CONTINUE WHEN first IS NULL;
    SELECT k.n INTO stays FROM @schema@.checkpoints k
      WHERE k.feed = head.feed AND k.shard = head.shard AND k.n >= first AND k.n < first + chunk
        AND (k.at > clock_timestamp() - interval '10 minutes' OR k.n = head.n)
      ORDER BY k.n LIMIT 1;
    IF stays IS NULL THEN
      stays := first + chunk;
      more := true;
    END IF;
    CONTINUE WHEN stays IS NOT DISTINCT FROM head.place;
    DELETE FROM @schema@.checkpoints o WHERE o.feed = head.feed AND o.shard = head.shard AND o.n >= first AND o.n < stays;
    GET DIAGNOSTICS gone = ROW_COUNT;
    INSERT INTO @schema@.swept AS s (feed, shard, n) VALUES (head.feed, head.shard, stays) ON CONFLICT (feed, shard) DO UPDATE SET n = excluded.n;
    total := total + gone;
    IF total >= chunk THEN
      more := true;
      EXIT;
    END IF;
  END LOOP;

  -- This misses a key whose transaction was open for longer than the window. The key stays until it
  -- is enqueued again.
  oldest := coalesce((SELECT s.at FROM @schema@.swept s WHERE s.feed = '' AND s.shard = 0), '-infinity');
  DELETE FROM @schema@.dedup_keys d WHERE d.ctid = ANY (ARRAY(
    SELECT k.ctid FROM @schema@.dedup_keys k WHERE k.at >= oldest AND k.at < expiry ORDER BY k.at LIMIT chunk FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS gone = ROW_COUNT;
  IF gone > 0 THEN
    more := more OR gone = chunk;
    -- Start the next sweep at the first remaining key, not at the last deleted one: a transaction
    -- may hold an earlier key's lock and then roll back.
    INSERT INTO @schema@.swept AS s (feed, shard, at)
      VALUES ('', 0, coalesce((SELECT k.at FROM @schema@.dedup_keys k WHERE k.at >= oldest AND k.at < expiry ORDER BY k.at LIMIT 1), expiry))
      ON CONFLICT (feed, shard) DO UPDATE SET at = excluded.at;
  END IF;

  DELETE FROM @schema@.members m WHERE m.ctid = ANY (ARRAY(
    SELECT o.ctid FROM @schema@.members o WHERE o.until < clock_timestamp() - interval '1 hour' LIMIT chunk));
  GET DIAGNOSTICS gone = ROW_COUNT;
  more := more OR gone = chunk;

  DELETE FROM @schema@.problems p WHERE p.ctid = ANY (ARRAY(  -- a feed has at most a thousand
    SELECT o.ctid FROM @schema@.problems o WHERE o.over < clock_timestamp() - interval '7 days' LIMIT chunk));

  SELECT j.id INTO old FROM @schema@.jobs j WHERE j.finished < clock_timestamp() - interval '30 days' ORDER BY j.id LIMIT 1;
  IF FOUND THEN
    DELETE FROM @schema@.job_results r WHERE r.ctid = ANY (ARRAY(
      SELECT o.ctid FROM @schema@.job_results o WHERE o.job = old ORDER BY o.seq LIMIT chunk));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone < chunk THEN
      DELETE FROM @schema@.jobs j WHERE j.id = old;
    END IF;
    more := true;
  END IF;
  PERFORM @schema@.forget_excluded();  -- a feed has at most about a thousand
  RETURN more;
END
$$;
REVOKE ALL ON FUNCTION @schema@.sweep() FROM PUBLIC;

-- full_xid returns the transaction ID whose last 32 bits a system column shows. latest must be a
-- later one.
CREATE OR REPLACE FUNCTION @schema@.full_xid(x xid, latest xid8) RETURNS xid8
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (latest::text::bigint - ((latest::text::bigint - x::text::bigint) & 4294967295))::text::xid8;

-- slot_ends returns when the oldest message of a slot was written, and which transaction wrote the
-- newest. Both are null if the slot is empty.
CREATE OR REPLACE FUNCTION @schema@.slot_ends(slot integer, OUT oldest timestamptz, OUT newest xid8)
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
BEGIN
  IF to_regclass(format('@schema@.%I', 'messages_' || slot)) IS NULL THEN
    RETURN;  -- the partition was dropped by hand; postrider doctor reports it
  END IF;
  EXECUTE format('SELECT m.created_at FROM @schema@.%I m ORDER BY m.seq LIMIT 1', 'messages_' || slot) INTO oldest;
  EXECUTE format('SELECT @schema@.full_xid(m.xmin, $1) FROM @schema@.%I m ORDER BY m.seq DESC LIMIT 1', 'messages_' || slot)
    INTO newest USING pg_snapshot_xmax(pg_current_snapshot());
END
$$;

-- unfrozen_slot returns a slot that is no longer written and whose newest message is not frozen, if
-- the caller may vacuum it, or null. A frozen slot needs no anti-wraparound vacuum, which would
-- read all of it. The slot that is emptied next is not worth freezing.
CREATE OR REPLACE FUNCTION @schema@.unfrozen_slot() RETURNS text
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  latest  xid8     := pg_snapshot_xmax(pg_current_snapshot());
  current integer  := @schema@.slot_at(clock_timestamp());
  slot    regclass;
BEGIN
  FOR distance IN 2 .. @schema@.slot_count() - 1 LOOP  -- the oldest first
    slot := format('@schema@.%I', 'messages_' || (current + distance) % @schema@.slot_count());
    CONTINUE WHEN NOT EXISTS (
      SELECT FROM pg_class c WHERE c.oid = slot AND (
        pg_has_role(c.relowner, 'USAGE')
        OR CASE WHEN current_setting('server_version_num')::integer >= 170000 THEN has_table_privilege(c.oid, 'MAINTAIN') END));
    IF (SELECT e.newest FROM @schema@.slot_ends((current + distance) % @schema@.slot_count()) e)
       >= (SELECT @schema@.full_xid(c.relfrozenxid, latest) FROM pg_class c WHERE c.oid = slot) THEN
      RETURN slot::text;
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;

-- rebase makes the ledger belong to this database. It keeps the messages that the ledger had not
-- settled, deletes the others, and starts every cursor from the beginning. The transaction IDs of the old
-- database mean nothing here. So the kept messages get made-up IDs below every real one: one ID for
-- each set of feeds that have not settled a message. Each new cursor lists the IDs of its feed's
-- sets as in flight. The messages also get new sequence numbers, in the old order, because the
-- sequence may not have been copied. rebase returns how many messages destinations will get,
-- without canaries.
--
-- After pg_upgrade, and in a copy of the database within its cluster, everything was copied page by
-- page and keeps its meaning. Then the cursors continue and nothing waits.
CREATE OR REPLACE FUNCTION @schema@.rebase() RETURNS TABLE (feed text, unsettled bigint)
  LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  latest   xid8;     -- above the transaction ID of every row
  arrival  xid8;     -- the transaction that brought the ledger here
  same     boolean;  -- transaction IDs still have the meaning that they had where the ledger was written
  sets     integer;
  lowest   bigint;
  highest  bigint := 0;
  snapshot pg_snapshot;
BEGIN
  PERFORM @schema@.check_isolation();
  -- If tables were copied one by one, the sequences of their identity columns were not.
  PERFORM setval(pg_get_serial_sequence('@schema@.audit', 'n'), max(a.n)) FROM @schema@.audit a
    HAVING max(a.n) > coalesce(pg_sequence_last_value(pg_get_serial_sequence('@schema@.audit', 'n')::regclass), 0);
  PERFORM setval(pg_get_serial_sequence('@schema@.jobs', 'id'), max(j.id)) FROM @schema@.jobs j
    HAVING max(j.id) > coalesce(pg_sequence_last_value(pg_get_serial_sequence('@schema@.jobs', 'id')::regclass), 0);
  latest := pg_snapshot_xmax(pg_current_snapshot());
  IF (SELECT i.row_xid = i.xmin FROM @schema@.identity i) AND NOT EXISTS (
       SELECT FROM @schema@.cursors u JOIN @schema@.checkpoints c USING (feed, shard, n)
       WHERE pg_snapshot_xmax(c.s1) > @schema@.full_xid(c.xmin, latest)
          OR greatest(c.lo, c.lo2, c.last) > coalesce(pg_sequence_last_value('@schema@.message_seq'), 0))
     AND coalesce((SELECT max(m.seq) FROM @schema@.messages m), 0) <= coalesce(pg_sequence_last_value('@schema@.message_seq'), 0) THEN
    LOCK TABLE @schema@.checkpoints IN EXCLUSIVE MODE;
    INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, s1, lo, starts, s2, lo2, starts2, last, hi, sent)
      SELECT c.feed, c.shard, c.n + 1, true, clock_timestamp(), c.s1, c.lo, c.starts, c.s2, c.lo2, c.starts2, c.last, c.hi, c.unsure
      FROM @schema@.cursors c;
    PERFORM @schema@.move_in();
    DELETE FROM @schema@.members;
    UPDATE @schema@.generation SET id = gen_random_uuid();
    RETURN QUERY
      WITH cursors AS MATERIALIZED (SELECT * FROM @schema@.cursors)
      SELECT f.name, (
        SELECT count(*) FROM @schema@.messages m
        JOIN cursors c ON c.base = @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, c.shards) AND @schema@.covers(c.tenant, c.others, m.tenant_id)
        WHERE c.feed = f.name AND m.seq > (SELECT min(l.passed) FROM cursors l WHERE l.feed = f.name) AND m.type <> 'postrider.canary'
          AND NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last)
          AND NOT EXISTS (SELECT FROM @schema@.excluded x WHERE x.feed = f.name AND x.seq = m.seq))
      FROM @schema@.feeds f ORDER BY 1;
    RETURN;
  END IF;
  -- Take this lock first: a canary that has deleted old ones and then waits for the log would
  -- deadlock with us.
  PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.canary', 0));
  -- Take the lock that TRUNCATE needs at once: a writer that has read the table and then waits for
  -- us would deadlock with a lock upgrade.
  LOCK TABLE @schema@.messages IN ACCESS EXCLUSIVE MODE;
  LOCK TABLE @schema@.checkpoints IN EXCLUSIVE MODE;

  -- Transaction IDs keep their meaning in a clone within one cluster, and after pg_upgrade, which
  -- copies each row with its xmin. If the rows were written again and this one has its old xmin by
  -- chance, the second condition finds ledger rows that are older than the snapshots in them.
  SELECT @schema@.full_xid(i.xmin, latest),
         i.system_identifier = s.system_identifier
         OR i.row_xid = i.xmin AND NOT EXISTS (
              SELECT FROM @schema@.cursors u JOIN @schema@.checkpoints c USING (feed, shard, n)
              WHERE pg_snapshot_xmax(c.s1) > @schema@.full_xid(c.xmin, latest))
    INTO STRICT arrival, same
    FROM @schema@.identity i, pg_control_system() s;

  -- In another database, the ledger does not cover messages that were written after the ledger came
  -- here. Such a message has a transaction ID between arrival and the row's xmin (equal to it, or
  -- earlier if a subtransaction wrote the row), or it is newer than the cursor. Both conditions can
  -- only keep more messages.
  CREATE TEMPORARY TABLE postrider_cursors ON COMMIT DROP AS SELECT * FROM @schema@.cursors;
  CREATE TEMPORARY TABLE postrider_kept ON COMMIT DROP AS
    SELECT m.*, here, feeds
    FROM @schema@.messages m
    CROSS JOIN LATERAL (
      SELECT NOT coalesce(same, false) AND m.xid > arrival AND m.xid <= @schema@.full_xid(m.xmin, latest)) h(here)
    CROSS JOIN LATERAL (
      SELECT coalesce(array_agg(c.feed ORDER BY c.feed), '{}') FROM postrider_cursors c
      WHERE c.base = @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, c.shards) AND @schema@.covers(c.tenant, c.others, m.tenant_id)
        AND (here OR NOT coalesce(same, false) AND m.created_at > c.at
             OR NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last)
             OR EXISTS (SELECT FROM @schema@.deferred d WHERE d.bare AND d.feed = c.feed AND d.seq = m.seq))
        AND NOT EXISTS (SELECT FROM @schema@.excluded x WHERE x.feed = c.feed AND x.seq = m.seq)) w(feeds)
    WHERE m.type <> 'postrider.canary'  -- canaries prove nothing here, and no destination gets them
      AND (feeds <> '{}' OR NOT EXISTS (SELECT FROM postrider_cursors));  -- without a feed, the first one will need everything
  CREATE TEMPORARY TABLE postrider_sets ON COMMIT DROP AS
    SELECT feeds, (10 + row_number() OVER (ORDER BY feeds))::text::xid8 AS made_up, count(*) AS messages
    FROM postrider_kept GROUP BY feeds;
  SELECT count(*) INTO sets FROM postrider_sets;
  IF sets > 600 THEN
    RAISE EXCEPTION 'too many feeds stand at too many places: % sets of waiting feeds', sets;
  END IF;

  -- The query above left out excluded messages. A dead letter without content is sent once more,
  -- because its content would be lost with the log.
  DELETE FROM @schema@.excluded;
  DELETE FROM @schema@.deferred d USING postrider_kept k WHERE d.bare AND d.feed = ANY (k.feeds) AND d.seq = k.seq;
  -- Deferred messages keep their numbers, so the new numbers must lie above them.
  SELECT max(d.seq) INTO highest FROM @schema@.deferred d;
  IF highest >= nextval('@schema@.message_seq') THEN
    PERFORM setval('@schema@.message_seq', highest);
  END IF;
  highest := 0;
  TRUNCATE @schema@.messages;
  INSERT INTO @schema@.messages (
    xid, seq, created_at, occurred_at, id, schema_version, slot, type, aggregate_type, aggregate_id, key, topic,
    routing_key, tenant_id, content_type, schema_id, dedup_key, correlation_id, causation_id, headers, payload,
    deliver_after, priority)
  SELECT
    made_up, nextval('@schema@.message_seq'), created_at, occurred_at, id, schema_version, @schema@.slot_at(now()), type,
    aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_id, dedup_key, correlation_id,
    causation_id, headers, payload, deliver_after, priority
  FROM (SELECT * FROM postrider_kept JOIN postrider_sets USING (feeds) ORDER BY here, seq) k;
  SELECT coalesce(min(m.seq), 1) - 1, coalesce(max(m.seq), 0) INTO lowest, highest FROM @schema@.messages m;

  -- Nothing else has written. So up to the highest number, these snapshots see everything or list
  -- it as in flight.
  snapshot := pg_current_snapshot();
  INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, sent, lo, starts, s1)
    SELECT c.feed, c.shard, c.n + 1, true, clock_timestamp(), c.unsure, highest, array_fill(lowest, ARRAY[coalesce(cardinality(i.xids), 0)]),
           (least(i.xids[1], pg_snapshot_xmin(snapshot))::text || ':' || pg_snapshot_xmax(snapshot)::text || ':'
            || coalesce(array_to_string(i.xids, ','), ''))::pg_snapshot
    FROM postrider_cursors c
    CROSS JOIN LATERAL (
      SELECT array_agg(x ORDER BY x) AS xids
      FROM (SELECT s.made_up FROM postrider_sets s WHERE c.feed = ANY (s.feeds)
            UNION ALL SELECT * FROM pg_snapshot_xip(snapshot)) AS l(x)) i;
  PERFORM @schema@.move_in();
  DELETE FROM @schema@.canaries;
  DELETE FROM @schema@.moves;  -- their positions mean nothing here; operators can start them again
  DELETE FROM @schema@.members;  -- members of the old database would keep their share until their leases end
  UPDATE @schema@.generation SET id = gen_random_uuid();  -- makes relays that run here already start over

  RETURN QUERY
    SELECT f.name, coalesce((SELECT sum(s.messages)::bigint FROM postrider_sets s WHERE f.name = ANY (s.feeds)), 0)
    FROM @schema@.feeds f ORDER BY 1;
END
$$;
REVOKE ALL ON FUNCTION @schema@.rebase() FROM PUBLIC;
