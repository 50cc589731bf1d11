-- Consumers have no right to read the table: they call these functions, which return one key at a
-- time.

-- idempotency_state returns what is known about a claim, or null if the key is free.
CREATE OR REPLACE FUNCTION @schema@.idempotency_state(k @schema@.idempotency_keys, of_fingerprint bytea, of_token text) RETURNS text
  LANGUAGE plpgsql
AS $$
BEGIN
  IF k.expires IS NULL OR k.expires <= clock_timestamp() THEN
    RETURN NULL;
  ELSIF k.fingerprint <> of_fingerprint THEN
    RETURN 'mismatch';
  ELSIF k.answer IS NOT NULL THEN
    RETURN 'done';
  ELSIF k.token = of_token THEN
    RETURN 'claimed';
  ELSIF k.leased > clock_timestamp() THEN
    RETURN 'busy';
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION @schema@.idempotency_state(@schema@.idempotency_keys, bytea, text) FROM PUBLIC;

-- idempotency_claim claims a key. A lease of zero seconds lasts until the end of the transaction:
-- the claim is then an advisory lock, and nothing is written. Every claim takes that lock, if only
-- for a moment, and none waits for it. Existing answers are found before that, so that reading them
-- blocks nobody.
CREATE OR REPLACE FUNCTION @schema@.idempotency_claim(
  of_tenant text, of_principal text, of_route text, of_key text, of_fingerprint bytea, of_token text,
  lease double precision, retention double precision, OUT state text, OUT answer bytea)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
DECLARE
  k @schema@.idempotency_keys;
BEGIN
  SELECT * INTO k FROM @schema@.idempotency_keys i
    WHERE i.tenant = of_tenant AND i.principal = of_principal AND i.route = of_route AND i.key = of_key;
  state := @schema@.idempotency_state(k, of_fingerprint, of_token);
  IF state IS NULL THEN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(of_key, hashtextextended(of_route, hashtextextended(of_principal,
        hashtextextended(of_tenant, hashtextextended('@schema@.idempotency', 0)))))) THEN
      state := 'busy';
      RETURN;
    END IF;
    -- A transaction that has the row locked is about to complete it, or to delete it because it has
    -- expired.
    SELECT * INTO k FROM @schema@.idempotency_keys i
      WHERE i.tenant = of_tenant AND i.principal = of_principal AND i.route = of_route AND i.key = of_key FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM @schema@.idempotency_keys i
        WHERE i.tenant = of_tenant AND i.principal = of_principal AND i.route = of_route AND i.key = of_key) THEN
      state := 'busy';
      RETURN;
    END IF;
    state := @schema@.idempotency_state(k, of_fingerprint, of_token);
  END IF;
  IF state IS NULL AND lease > 0 THEN
    INSERT INTO @schema@.idempotency_keys AS i (tenant, principal, route, key, fingerprint, token, leased, expires)
      VALUES (of_tenant, of_principal, of_route, of_key, of_fingerprint, of_token, clock_timestamp() + make_interval(secs => lease),
              clock_timestamp() + make_interval(secs => retention))
      ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO UPDATE
      SET fingerprint = excluded.fingerprint, token = excluded.token, leased = excluded.leased, answer = NULL,
          expires = CASE WHEN i.expires <= clock_timestamp() THEN excluded.expires ELSE i.expires END
      WHERE @schema@.idempotency_state(i, of_fingerprint, of_token) IS NULL;
    IF NOT FOUND THEN
      state := 'busy';
      RETURN;
    END IF;
  END IF;
  state := coalesce(state, 'claimed');
  IF state = 'done' THEN
    answer := k.answer;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION @schema@.idempotency_claim(text, text, text, text, bytea, text, double precision, double precision) FROM PUBLIC;

-- idempotency_complete stores the answer of a claim. It returns false if the claim is lost.
CREATE OR REPLACE FUNCTION @schema@.idempotency_complete(
  of_tenant text, of_principal text, of_route text, of_key text, of_fingerprint bytea, of_token text,
  lease double precision, retention double precision, of_answer bytea) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
BEGIN
  UPDATE @schema@.idempotency_keys i SET answer = of_answer
    WHERE i.tenant = of_tenant AND i.principal = of_principal AND i.route = of_route AND i.key = of_key
      AND i.token = of_token AND (i.answer IS NULL OR i.answer = of_answer);
  IF FOUND OR lease > 0 THEN
    RETURN FOUND;
  END IF;
  INSERT INTO @schema@.idempotency_keys AS i (tenant, principal, route, key, fingerprint, token, leased, expires, answer)
    VALUES (of_tenant, of_principal, of_route, of_key, of_fingerprint, of_token, clock_timestamp(),
            clock_timestamp() + make_interval(secs => retention), of_answer)
    ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO UPDATE
    SET fingerprint = excluded.fingerprint, token = excluded.token, leased = excluded.leased, expires = excluded.expires,
        answer = excluded.answer
    WHERE @schema@.idempotency_state(i, of_fingerprint, of_token) IS NULL;
  RETURN FOUND;
END
$$;
REVOKE ALL ON FUNCTION
  @schema@.idempotency_complete(text, text, text, text, bytea, text, double precision, double precision, bytea) FROM PUBLIC;

-- idempotency_release releases a key. If an open transaction is about to complete the claim, it
-- leaves the row alone.
CREATE OR REPLACE FUNCTION @schema@.idempotency_release(of_tenant text, of_principal text, of_route text, of_key text, of_token text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET jit = off
AS $$
BEGIN
  PERFORM FROM @schema@.idempotency_keys i
    WHERE i.tenant = of_tenant AND i.principal = of_principal AND i.route = of_route AND i.key = of_key
      AND i.token = of_token AND i.answer IS NULL FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    DELETE FROM @schema@.idempotency_keys i
      WHERE i.tenant = of_tenant AND i.principal = of_principal AND i.route = of_route AND i.key = of_key
        AND i.token = of_token AND i.answer IS NULL;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION @schema@.idempotency_release(text, text, text, text, text) FROM PUBLIC;

-- idempotency_purge deletes up to max_rows expired keys, from a time on. It returns how many, and
-- the time from which to continue, so that the next call does not scan dead rows that vacuum has
-- not removed yet.
CREATE OR REPLACE FUNCTION @schema@.idempotency_purge(since timestamptz, max_rows integer, OUT removed bigint, OUT reached timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off
  SET jit = off
AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  WITH old AS MATERIALIZED (
    SELECT i.ctid AS place, i.expires FROM @schema@.idempotency_keys i
    WHERE i.expires >= since AND i.expires <= clock_timestamp()
    ORDER BY i.expires LIMIT max_rows FOR UPDATE SKIP LOCKED),
  gone AS (DELETE FROM @schema@.idempotency_keys i USING old WHERE i.ctid = old.place RETURNING i.expires)
  SELECT count(*), coalesce(max(g.expires), since) INTO removed, reached FROM gone g;
END
$$;
REVOKE ALL ON FUNCTION @schema@.idempotency_purge(timestamptz, integer) FROM PUBLIC;
