-- Retention is TRUNCATE of a ring slot; what follows a change of database is a rebase.

-- Whether every feed has delivered everything in a slot. Looks at the newest transaction of the slot first, and only
-- when that does not settle the question at single rows, of which it reads a bounded number.
CREATE FUNCTION @schema@.slot_passed(slot integer) RETURNS boolean
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  horizon xid8;
  newest  xid8;
  unsure  bigint;
  waiting boolean;
BEGIN
  SELECT pg_snapshot_xmin(c.s1) INTO horizon FROM @schema@.cursors c ORDER BY 1 LIMIT 1;
  IF horizon IS NULL THEN
    RETURN false;  -- no feed at all: everything is still to be delivered to the first one
  END IF;
  EXECUTE format('SELECT xid FROM @schema@.%I ORDER BY xid DESC LIMIT 1', 'messages_' || slot) INTO newest;
  IF newest IS NULL OR newest < horizon THEN
    RETURN true;
  END IF;
  EXECUTE format('SELECT count(*) FROM (SELECT FROM @schema@.%I WHERE xid >= $1 LIMIT 10001) m', 'messages_' || slot)
    INTO unsure USING horizon;
  IF unsure > 10000 THEN
    RETURN false;
  END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM @schema@.%I m JOIN @schema@.cursors c ON c.shard = m.shard
                   WHERE m.xid >= $1 AND NOT pg_visible_in_snapshot(m.xid, c.s1))', 'messages_' || slot)
    INTO waiting USING horizon;
  RETURN NOT waiting;
END
$$;

-- Empties the slot that will be written next, if every feed has passed all of it; otherwise the slot simply takes a
-- second turn: growth, never loss. The lock keeps out writers that began in that slot's last turn, and the short time-out
-- keeps them, and readers, from queueing behind us.
CREATE FUNCTION @schema@.reclaim() RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET lock_timeout = '20ms'
AS $$
DECLARE
  slot   integer := (@schema@.slot_at(clock_timestamp()) + 1) % @schema@.slot_count();
  filled boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM @schema@.%I)', 'messages_' || slot) INTO filled;
  IF NOT filled OR NOT @schema@.slot_passed(slot) THEN
    RETURN false;
  END IF;
  BEGIN
    EXECUTE format('LOCK TABLE @schema@.%I IN ACCESS EXCLUSIVE MODE', 'messages_' || slot);
  EXCEPTION WHEN lock_not_available THEN
    RETURN false;
  END;
  IF NOT @schema@.slot_passed(slot) OR @schema@.slot_at(clock_timestamp()) = slot THEN
    RETURN false;
  END IF;
  EXECUTE format('TRUNCATE @schema@.%I', 'messages_' || slot);
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION @schema@.reclaim() FROM PUBLIC;

-- Drops ledger rows that ten minutes and a newer row have made history, and members that are long gone.
CREATE FUNCTION @schema@.sweep() RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM @schema@.checkpoints o USING @schema@.cursors c
    WHERE o.feed = c.feed AND o.shard = c.shard AND o.n < c.n AND o.at < clock_timestamp() - interval '10 minutes';
  DELETE FROM @schema@.members m WHERE m.until < clock_timestamp() - interval '1 hour';
END
$$;
REVOKE ALL ON FUNCTION @schema@.sweep() FROM PUBLIC;

-- Makes this database the home of the ledger: keeps what the old ledger had not settled, forgets the rest, and starts
-- every cursor anew. The transaction IDs of the old database mean nothing here, so the kept messages get made-up ones,
-- below every real one: one for each set of feeds that still wait. Each new cursor lists those that its feed waits for
-- as in flight.
CREATE FUNCTION @schema@.rebase() RETURNS TABLE (feed text, unsettled bigint)
  LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  sets     integer;
  snapshot pg_snapshot;
BEGIN
  LOCK TABLE @schema@.messages IN EXCLUSIVE MODE;
  LOCK TABLE @schema@.checkpoints IN EXCLUSIVE MODE;

  -- Written here, not restored: by its true xmin, or because it is younger than the ledger. Both can only add.
  CREATE TEMPORARY TABLE postrider_kept ON COMMIT DROP AS
    SELECT m.seq, array_agg(c.feed ORDER BY c.feed) AS feeds
    FROM @schema@.messages m JOIN @schema@.cursors c ON c.shard = m.shard
    WHERE NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last)
       OR m.created_at > c.at
       OR m.xmin::text::bigint = m.xid::text::numeric % 4294967296
    GROUP BY m.seq;
  CREATE TEMPORARY TABLE postrider_sets ON COMMIT DROP AS
    SELECT k.feeds, (10 + row_number() OVER (ORDER BY k.feeds))::text::xid8 AS xid
    FROM (SELECT DISTINCT feeds FROM postrider_kept) k;
  SELECT count(*) INTO sets FROM postrider_sets;
  IF sets > 600 THEN
    RAISE EXCEPTION 'too many feeds stand at too many places: % sets of waiting feeds', sets;
  END IF;
  CREATE TEMPORARY TABLE postrider_messages ON COMMIT DROP AS
    SELECT m.* FROM @schema@.messages m JOIN postrider_kept k USING (seq);
  UPDATE postrider_messages m SET xid = s.xid, slot = @schema@.slot_at(now())
    FROM postrider_kept k JOIN postrider_sets s USING (feeds) WHERE k.seq = m.seq;

  TRUNCATE @schema@.messages;
  INSERT INTO @schema@.messages (
    xid, seq, created_at, occurred_at, id, schema_version, slot, type, aggregate_type, aggregate_id, key, topic,
    routing_key, tenant_id, content_type, schema_id, dedup_key, correlation_id, causation_id, headers, payload)
  SELECT
    xid, seq, created_at, occurred_at, id, schema_version, slot, type, aggregate_type, aggregate_id, key, topic,
    routing_key, tenant_id, content_type, schema_id, dedup_key, correlation_id, causation_id, headers, payload
  FROM postrider_messages ORDER BY seq;

  snapshot := pg_current_snapshot();
  INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, lo, s1)
    SELECT c.feed, c.shard, c.n + 1, true, clock_timestamp(), 0,
           (least(i.xids[1], pg_snapshot_xmin(snapshot))::text || ':' || pg_snapshot_xmax(snapshot)::text || ':'
            || coalesce(array_to_string(i.xids, ','), ''))::pg_snapshot
    FROM @schema@.cursors c
    CROSS JOIN LATERAL (
      SELECT array_agg(x ORDER BY x) AS xids
      FROM (SELECT s.xid FROM postrider_sets s WHERE c.feed = ANY (s.feeds)
            UNION ALL SELECT * FROM pg_snapshot_xip(snapshot)) AS l(x)) i;
  UPDATE @schema@.identity i SET system_identifier = s.system_identifier, database_oid = d.oid, since = clock_timestamp()
    FROM pg_control_system() s, pg_database d WHERE d.datname = current_database();

  RETURN QUERY
    SELECT f.name, (SELECT count(*) FROM postrider_kept k WHERE f.name = ANY (k.feeds)) FROM @schema@.feeds f ORDER BY 1;
END
$$;
REVOKE ALL ON FUNCTION @schema@.rebase() FROM PUBLIC;
