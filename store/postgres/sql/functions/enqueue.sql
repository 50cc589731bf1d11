-- Functions for producers. They run with the caller's rights, except claim_keys.

-- claim_keys claims dedup keys for the caller's transaction, and returns those that are new. It
-- sorts them, so that two callers cannot deadlock. Only producers may call it: after a claim, a
-- message with the same key counts as repeated.
CREATE OR REPLACE FUNCTION @schema@.claim_keys(keys text[]) RETURNS SETOF text
  LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO @schema@.dedup_keys AS d (key)
    SELECT DISTINCT k FROM unnest(keys) k ORDER BY k
    ON CONFLICT (key) DO UPDATE SET at = excluded.at WHERE d.at < clock_timestamp() - @schema@.dedup_window()
    RETURNING d.key
$$;
REVOKE ALL ON FUNCTION @schema@.claim_keys(text[]) FROM PUBLIC;

-- lock_keys locks ordering keys until the transaction ends, so that messages of a key are delivered
-- in commit order even if their writers share no other lock. It sorts them, so that two callers
-- cannot deadlock.
--
-- The server has room for 64 locks per transaction (max_locks_per_transaction), and all
-- transactions fail once the shared lock table is full. So the keys are in 1,024 groups. Up to 32
-- keys are locked individually, after a shared lock on their groups. More keys lock whole groups:
-- at most 1,024 locks, a sixth of the lock table of a server with 100 connections.
CREATE OR REPLACE FUNCTION @schema@.lock_keys(VARIADIC keys text[]) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  hashes bigint[] := ARRAY(SELECT DISTINCT hashtextextended(k, 7) AS hash FROM unnest(keys) k ORDER BY 1);
  space  integer  := hashtext('@schema@.lock_keys');
BEGIN
  IF cardinality(hashes) > 32 THEN
    PERFORM pg_advisory_xact_lock(space, g.number) FROM (SELECT DISTINCT (h & 1023)::integer AS number FROM unnest(hashes) h ORDER BY 1) g;
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock_shared(space, g.number) FROM (SELECT DISTINCT (h & 1023)::integer AS number FROM unnest(hashes) h ORDER BY 1) g;
  PERFORM pg_advisory_xact_lock(h) FROM unnest(hashes) h;
END
$$;

-- check_message says what is wrong with a message. The log itself would only say that no partition
-- accepts it.
CREATE OR REPLACE FUNCTION @schema@.check_message(id uuid, type text, schema_version integer, headers jsonb, payload bytea) RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  wrong text := CASE
    WHEN id IS NULL THEN 'id is empty'
    WHEN coalesce(type, '') = '' THEN 'type is empty'
    WHEN schema_version IS NULL THEN 'schema_version is empty'
    WHEN schema_version < 0 THEN 'schema_version is below 0'
    WHEN octet_length(payload) > @max_payload@ THEN 'payload has ' || octet_length(payload) || ' bytes, more than @max_payload@'
    ELSE @schema@.wrong_headers(headers) END;
BEGIN
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION 'invalid message: %', wrong USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = split_part(wrong, ' ', 1);
  END IF;
END
$$;

-- enqueue writes one message, from any language: SELECT postrider.enqueue('order.placed', 'order',
-- '42', '{"total": 7}'). The payload is stored as it is written; bytes that are not JSON go into
-- payload_bytes. If the dedup key was enqueued before, it returns null and writes nothing.
CREATE OR REPLACE FUNCTION @schema@.enqueue(
  type           text,
  aggregate_type text        DEFAULT NULL,
  aggregate_id   text        DEFAULT NULL,
  payload        json        DEFAULT NULL,
  payload_bytes  bytea       DEFAULT NULL,
  content_type   text        DEFAULT NULL,
  topic          text        DEFAULT NULL,
  key            text        DEFAULT NULL,
  routing_key    text        DEFAULT NULL,
  tenant_id      text        DEFAULT NULL,
  headers        jsonb       DEFAULT NULL,
  schema_version integer     DEFAULT 1,
  schema_id      text        DEFAULT NULL,
  dedup_key      text        DEFAULT NULL,
  occurred_at    timestamptz DEFAULT NULL,
  correlation_id text        DEFAULT NULL,
  causation_id   text        DEFAULT NULL,
  id             uuid        DEFAULT @schema@.new_id(),
  deliver_after  timestamptz DEFAULT NULL,
  priority       integer     DEFAULT NULL
) RETURNS uuid
  LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
  body bytea := coalesce(payload_bytes, convert_to(payload::text, 'UTF8'));
BEGIN
  IF (payload IS NULL) = (payload_bytes IS NULL) THEN
    RAISE EXCEPTION 'give either payload or payload_bytes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM @schema@.check_message(id, type, schema_version, headers, body);
  -- A key that is too long fails with its message, in the INSERT.
  IF octet_length(dedup_key) BETWEEN 1 AND @max_text@ THEN
    IF NOT EXISTS (SELECT FROM @schema@.claim_keys(ARRAY[dedup_key])) THEN
      RETURN NULL;
    END IF;
  END IF;
  INSERT INTO @schema@.messages (
    id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id,
    dedup_key, occurred_at, correlation_id, causation_id, headers, payload, deliver_after, priority)
  VALUES (
    id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id,
    coalesce(nullif(content_type, ''), CASE WHEN payload IS NULL THEN 'application/octet-stream' ELSE 'application/json' END),
    schema_version, schema_id, dedup_key, occurred_at, correlation_id, causation_id, headers,
    body, deliver_after, priority);
  RETURN id;
END
$$;
