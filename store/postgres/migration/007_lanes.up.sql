-- What relays call to read a tenant apart from the others, and together with them again; and canaries.

-- Gives a tenant of a shard that was released a slice of its own, from where the shard stands. Returns false if somebody has
-- taken the shard meanwhile, or if there are too many slices.
CREATE FUNCTION @schema@.split(feed_name text, of_shard smallint, of_tenant text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  was    @schema@.checkpoints;
  number smallint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.slices/' || feed_name, 0));
  SELECT * INTO was FROM @schema@.checkpoints c WHERE c.feed = feed_name AND c.shard = of_shard ORDER BY c.n DESC LIMIT 1;
  IF NOT coalesce(was.released, false) OR of_shard >= @schema@.shard_count()
     OR (SELECT count(*) FROM @schema@.slices s WHERE s.feed = feed_name) >= 1000 THEN
    RETURN false;
  END IF;
  SELECT greatest(max(s.shard) + 1, @schema@.shard_count()) INTO number FROM @schema@.slices s WHERE s.feed = feed_name;
  INSERT INTO @schema@.slices (feed, shard, base, tenant) VALUES (feed_name, number, of_shard, of_tenant) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  -- The new row of the shard keeps out whoever has it by the old one, and does not know of the slice.
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

-- Makes a slice a part of its shard again, if both were released at the same place.
CREATE FUNCTION @schema@.merge(feed_name text, slice smallint) RETURNS boolean
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
  INSERT INTO @schema@.checkpoints (feed, shard, n, released, until, s1, lo, starts)
    VALUES (feed_name, whole.shard, whole.n + 1, true, clock_timestamp(), whole.s1, greatest(part.lo, whole.lo), whole.starts);
  DELETE FROM @schema@.checkpoints c WHERE c.feed = feed_name AND c.shard = slice;
  DELETE FROM @schema@.slices s WHERE s.feed = feed_name AND s.shard = slice;
  RETURN true;
EXCEPTION WHEN unique_violation THEN
  RETURN false;
END
$$;

-- When which canary was sent: a message of each shard that proves that others would arrive.
CREATE TABLE @schema@.canaries (
  shard smallint    NOT NULL,
  at    timestamptz NOT NULL,
  seq   bigint      NOT NULL,
  xid   xid8        NOT NULL
);
CREATE INDEX canaries_shard_at ON @schema@.canaries (shard, at);

CREATE FUNCTION @schema@.canary(within interval) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  IF NOT pg_try_advisory_xact_lock(hashtextextended('@schema@.canary', 0))
     OR EXISTS (SELECT FROM @schema@.canaries c WHERE c.shard = 0 AND c.at > clock_timestamp() - within) THEN
    RETURN;
  END IF;
  DELETE FROM @schema@.canaries c WHERE c.at < clock_timestamp() - interval '10 minutes'
    AND EXISTS (SELECT FROM @schema@.canaries n WHERE n.shard = c.shard AND n.at > c.at);
  WITH sent AS (
    INSERT INTO @schema@.messages (type, key, payload)
      SELECT 'postrider.canary', k.key, '' FROM (
        SELECT DISTINCT ON (@schema@.shard_of(key)) key
        FROM (SELECT 'postrider.canary/' || i FROM generate_series(1, 40 * @schema@.shard_count()) i) k(key)
        ORDER BY @schema@.shard_of(key), key) k
      RETURNING @schema@.shard_of(key), created_at, seq, xid)
  INSERT INTO @schema@.canaries (shard, at, seq, xid) SELECT * FROM sent;
END
$$;

-- When the newest canary was sent that a feed has settled, of the shard where that is longest ago.
CREATE FUNCTION @schema@.canary_of(feed_name text) RETURNS timestamptz
  LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
AS $$
  SELECT min(coalesce(
    (SELECT n.at FROM @schema@.canaries n
     WHERE n.shard = c.base AND @schema@.settled(n.xid, n.seq, c.s1, c.s2, c.last)
     ORDER BY n.at DESC LIMIT 1),
    (SELECT min(n.at) FROM @schema@.canaries n WHERE n.shard = c.base)))
  FROM @schema@.cursors c WHERE c.feed = feed_name AND c.tenant IS NULL
$$;

REVOKE ALL ON FUNCTION @schema@.split(text, smallint, text), @schema@.merge(text, smallint),
  @schema@.canary(interval) FROM PUBLIC;
