-- Functions with which relays give a tenant a slice of its own and merge it back, change the number
-- of shards, and send canaries.

-- split gives a tenant of a released shard a slice of its own, which starts at the shard's
-- position. It returns false if another member has taken the shard in the meantime, or if there are
-- too many slices.
CREATE OR REPLACE FUNCTION @schema@.split(feed_name text, of_shard smallint, of_tenant text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  was    @schema@.checkpoints;
  number smallint;
  shards smallint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.slices/' || feed_name, 0));
  SELECT * INTO was FROM @schema@.checkpoints c WHERE c.feed = feed_name AND c.shard = of_shard ORDER BY c.n DESC LIMIT 1;
  SELECT f.shards INTO shards FROM @schema@.feeds f WHERE f.name = feed_name;
  IF NOT coalesce(was.released, false) OR of_shard >= shards OR EXISTS (SELECT FROM @schema@.moves v WHERE v.feed = feed_name)
     OR (SELECT count(*) FROM @schema@.slices s WHERE s.feed = feed_name) >= 1000 THEN
    RETURN false;
  END IF;
  SELECT min(free.n) INTO number FROM generate_series(shards, shards + 1000) free(n)
    WHERE NOT EXISTS (SELECT FROM @schema@.slices s WHERE s.feed = feed_name AND s.shard = free.n);
  INSERT INTO @schema@.slices (feed, shard, base, tenant) VALUES (feed_name, number, of_shard, of_tenant) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  -- The new row of the shard fences off a member that still owns it by the old row and does not
  -- know of the slice.
  was.released := true;
  was.member := NULL;
  was.at := clock_timestamp();
  was.until := was.at;
  was.crashes := 0;
  was.n := was.n + 1;
  INSERT INTO @schema@.checkpoints SELECT was.*;
  was.shard := number;
  SELECT coalesce(max(c.n) + 1, 0) INTO was.n
    FROM @schema@.checkpoints c WHERE c.feed = feed_name AND c.shard = number;
  INSERT INTO @schema@.checkpoints SELECT was.*;
  RETURN true;
EXCEPTION WHEN unique_violation THEN
  RETURN false;
END
$$;

-- merge makes a slice a part of its shard again, if both were released at the same position.
CREATE OR REPLACE FUNCTION @schema@.merge(feed_name text, slice smallint) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  part  @schema@.cursors;
  whole @schema@.cursors;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.slices/' || feed_name, 0));
  SELECT * INTO part FROM @schema@.cursors c WHERE c.feed = feed_name AND c.shard = slice AND c.tenant IS NOT NULL;
  SELECT * INTO whole FROM @schema@.cursors c WHERE c.feed = feed_name AND c.shard = part.base;
  IF NOT coalesce(part.released AND whole.released AND part.s1::text = whole.s1::text
                  AND part.s2 IS NULL AND whole.s2 IS NULL, false) THEN
    RETURN false;
  END IF;
  INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, s1, lo, starts, sent)
    VALUES (feed_name, whole.shard, whole.n + 1, true, clock_timestamp(), whole.s1, greatest(part.lo, whole.lo), whole.starts,
            least(part.unsure, whole.unsure));
  -- Keep the last row, from which the next slice with this number continues: a late settle of this
  -- slice must not find its primary key free.
  DELETE FROM @schema@.checkpoints c WHERE c.feed = feed_name AND c.shard = slice AND c.n < part.n;
  DELETE FROM @schema@.slices s WHERE s.feed = feed_name AND s.shard = slice;
  RETURN true;
EXCEPTION WHEN unique_violation THEN
  RETURN false;
END
$$;

-- change_shards starts a change of a feed's number of shards. Relays carry it out, with
-- advance_move.
CREATE OR REPLACE FUNCTION @schema@.change_shards(who text, why text, feed_name text, wanted integer) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  was smallint;
  to_be smallint;
BEGIN
  IF wanted NOT BETWEEN 1 AND 1024 THEN
    RAISE EXCEPTION 'a feed has 1 to 1024 shards' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.slices/' || feed_name, 0));
  SELECT f.shards INTO was FROM @schema@.feeds f WHERE f.name = feed_name FOR UPDATE;
  IF was IS NULL THEN
    RETURN false;
  END IF;
  SELECT v.shards INTO to_be FROM @schema@.moves v WHERE v.feed = feed_name;
  IF coalesce(to_be, was) = wanted THEN
    RETURN true;
  END IF;
  IF to_be IS NOT NULL THEN
    RAISE EXCEPTION 'the feed is just changing to % shards', to_be USING ERRCODE = 'PR008';
  END IF;
  IF EXISTS (SELECT FROM @schema@.slices s WHERE s.feed = feed_name) THEN
    RAISE EXCEPTION 'a tenant is read apart from the others until it has caught up' USING ERRCODE = 'PR008';
  END IF;
  INSERT INTO @schema@.moves (feed, shards) VALUES (feed_name, wanted);
  PERFORM @schema@.record(who, why, 'feed shards', feed_name, 0, NULL,
                          jsonb_build_object('shards', was), jsonb_build_object('shards', wanted));
  RETURN true;
END
$$;

-- deferral_shards returns the number of shards to use when a message is deferred outside a relay. Once
-- deferred messages have begun to move, it is the new number, because a row that is inserted then
-- is not moved again.
CREATE OR REPLACE FUNCTION @schema@.deferral_shards(feed_name text) RETURNS smallint
  LANGUAGE plpgsql
AS $$
DECLARE
  shards smallint;
BEGIN
  SELECT f.shards INTO shards FROM @schema@.feeds f WHERE f.name = feed_name FOR SHARE;  -- keeps the number valid until the message is inserted
  RETURN coalesce((SELECT v.shards FROM @schema@.moves v WHERE v.feed = feed_name AND v.moved IS NOT NULL), shards);
END
$$;

-- advance_move takes the next step of a change of shards, if that is possible now. Two relays must
-- never send messages of the same key. So nothing moves before all cursors were released or their
-- owners have been silent for too long. All cursors must then be at the same position, because a
-- message of a new shard may come from any old one. If they are not, relays take them again and
-- read up to the position of the last one. Then deferred messages move, in steps, and the new
-- shards start at that position.
CREATE OR REPLACE FUNCTION @schema@.advance_move(feed_name text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  most CONSTANT integer := 5000;  -- deferred messages to move in one step
  move   @schema@.moves;
  was    smallint;
  lapsed record;
  top    bigint;
BEGIN
  PERFORM @schema@.check_isolation();
  -- No member may take a shard meanwhile: one that does not know the position would read beyond it.
  IF NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.balance/' || feed_name, 0)) THEN
    RETURN false;
  END IF;
  SELECT f.shards INTO was FROM @schema@.feeds f WHERE f.name = feed_name FOR UPDATE;
  SELECT * INTO move FROM @schema@.moves v WHERE v.feed = feed_name;
  IF was IS NULL OR move.feed IS NULL THEN
    RETURN false;
  END IF;
  IF move.moved IS NULL THEN
    IF EXISTS (SELECT FROM @schema@.cursors c WHERE c.feed = feed_name AND NOT c.released
                 AND c.until + (c.until - c.at) / 4 > clock_timestamp()) THEN
      RETURN false;
    END IF;
    FOR lapsed IN SELECT * FROM @schema@.cursors c WHERE c.feed = feed_name AND NOT c.released LOOP
      INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, s1, lo, starts, s2, lo2, starts2, last, hi, crashes, sent)
        VALUES (feed_name, lapsed.shard, lapsed.n + 1, true, clock_timestamp(), lapsed.s1, lapsed.lo, lapsed.starts, lapsed.s2, lapsed.lo2,
                lapsed.starts2, lapsed.last, lapsed.hi, lapsed.crashes, lapsed.unsure)
        ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN
        RETURN false;  -- its owner is alive after all
      END IF;
    END LOOP;
    IF move.s IS NULL THEN
      -- A later snapshot sees what an earlier one sees. Of two with the same xmax, the later one
      -- lists fewer transactions.
      SELECT p.s, p.lo, p.starts INTO move.s, move.lo, move.starts FROM (
        SELECT coalesce(c.s2, c.s1) AS s, CASE WHEN c.s2 IS NULL THEN c.lo ELSE c.lo2 END AS lo,
               CASE WHEN c.s2 IS NULL THEN c.starts ELSE c.starts2 END AS starts
        FROM @schema@.cursors c WHERE c.feed = feed_name) p
      ORDER BY pg_snapshot_xmax(p.s) DESC, (SELECT count(*) FROM pg_snapshot_xip(p.s)), p.lo DESC LIMIT 1;
      SELECT q.last_value INTO move.hi FROM @schema@.message_seq q;
      UPDATE @schema@.moves v SET s = move.s, lo = move.lo, starts = move.starts, hi = move.hi WHERE v.feed = feed_name;
    END IF;
    IF EXISTS (SELECT FROM @schema@.cursors c WHERE c.feed = feed_name AND (c.s1::text <> move.s::text OR c.s2 IS NOT NULL)) THEN
      RETURN true;
    END IF;
    move.moved := 0;
  END IF;

  -- After this lock, a relay that was late with deferring a message has done so, or is refused.
  PERFORM @schema@.lock_deferred(feed_name, ARRAY(SELECT generate_series(0, was - 1)::smallint));
  SELECT max(d.seq) INTO top FROM (
    SELECT d.seq FROM @schema@.deferred d WHERE d.feed = feed_name AND d.seq > move.moved ORDER BY d.seq LIMIT most) d;
  IF top IS NOT NULL THEN
    UPDATE @schema@.deferred d SET shard = w.shard
      FROM (SELECT o.seq, @schema@.shard_of(coalesce(o.order_key, CASE WHEN o.bare THEN (
                     SELECT @schema@.order_key(m.key, m.aggregate_type, m.aggregate_id) FROM @schema@.messages m WHERE m.seq = o.seq LIMIT 1) END,
                   o.id::text), move.shards) AS shard
            FROM @schema@.deferred o WHERE o.feed = feed_name AND o.seq > move.moved AND o.seq <= top) w
      WHERE d.feed = feed_name AND d.seq = w.seq AND d.shard <> w.shard;
    UPDATE @schema@.moves v SET moved = top WHERE v.feed = feed_name;
    RETURN true;
  END IF;
  UPDATE @schema@.excluded x SET shard = @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, move.shards)
    FROM @schema@.messages m WHERE x.feed = feed_name AND m.seq = x.seq;
  -- The rows of the new shards are numbered from above all others, including former slices. So no
  -- former owner of a shard with one of these numbers can add a row to it.
  INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, s1, lo, starts, sent)
    SELECT feed_name, s, l.n + 1, true, clock_timestamp(), move.s, move.lo, move.starts,
           (SELECT min(c.unsure) FROM @schema@.cursors c WHERE c.feed = feed_name)
    FROM generate_series(0, move.shards - 1) s, (
      SELECT max(k.n) AS n FROM generate_series(0, 1024 + 1001) o CROSS JOIN LATERAL (
        SELECT c.n FROM @schema@.checkpoints c WHERE c.feed = feed_name AND c.shard = o::smallint ORDER BY c.n DESC LIMIT 1) k) l;
  DELETE FROM @schema@.checkpoints c WHERE c.feed = feed_name AND c.shard >= move.shards;
  UPDATE @schema@.feeds f SET shards = move.shards WHERE f.name = feed_name;
  DELETE FROM @schema@.moves v WHERE v.feed = feed_name;
  RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.canary(within interval) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.canary', 0))
     OR EXISTS (SELECT FROM @schema@.canaries c WHERE c.at > clock_timestamp() - within) THEN
    RETURN;
  END IF;
  DELETE FROM @schema@.canaries c WHERE c.at < clock_timestamp() - interval '10 minutes'
    AND EXISTS (SELECT FROM @schema@.canaries n WHERE n.key = c.key AND n.at > c.at);
  WITH sent AS (
    INSERT INTO @schema@.messages (type, key, payload)
      SELECT DISTINCT 'postrider.canary', k.key, ''::bytea
      FROM (SELECT DISTINCT shards FROM @schema@.feeds) f
      CROSS JOIN LATERAL (
        SELECT DISTINCT ON (@schema@.shard_of(key, f.shards)) key
        FROM (SELECT 'postrider.canary/' || i FROM generate_series(1, 40 * f.shards) i) k(key)
        ORDER BY @schema@.shard_of(key, f.shards), key) k
      RETURNING key, created_at, seq, xid)
  INSERT INTO @schema@.canaries (key, at, seq, xid) SELECT * FROM sent;
END
$$;

-- canary_of returns when the newest canary was sent that a feed has settled, for the shard where
-- that is longest ago.
CREATE OR REPLACE FUNCTION @schema@.canary_of(feed_name text) RETURNS timestamptz
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT min(coalesce(
    (SELECT n.at FROM @schema@.canaries n
     WHERE @schema@.shard_of(n.key, c.shards) = c.base AND @schema@.settled(n.xid, n.seq, c.s1, c.s2, c.last)
     ORDER BY n.at DESC LIMIT 1),
    (SELECT min(n.at) FROM @schema@.canaries n WHERE @schema@.shard_of(n.key, c.shards) = c.base)))
  FROM @schema@.cursors c WHERE c.feed = feed_name AND c.tenant IS NULL
$$;
REVOKE ALL ON FUNCTION @schema@.split(text, smallint, text), @schema@.merge(text, smallint),
  @schema@.change_shards(text, text, text, integer), @schema@.advance_move(text),
  @schema@.canary(interval) FROM PUBLIC;
