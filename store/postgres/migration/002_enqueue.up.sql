-- What producers call. Everything here runs with the caller's rights.

-- Dedup keys that have been enqueued, for as long as the window says.
CREATE TABLE @schema@.dedup_keys (
  key text        PRIMARY KEY,
  at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX dedup_keys_at ON @schema@.dedup_keys (at);

CREATE FUNCTION @schema@.dedup_window() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN make_interval(secs => @dedup@);

-- Returns those of the keys that are new, and claims them for the caller's transaction. In one global order, so that two
-- callers cannot wait for each other.
CREATE FUNCTION @schema@.claim_keys(keys text[]) RETURNS SETOF text
  LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO @schema@.dedup_keys AS d (key)
    SELECT DISTINCT k FROM unnest(keys) k ORDER BY k
    ON CONFLICT (key) DO UPDATE SET at = excluded.at WHERE d.at < clock_timestamp() - @schema@.dedup_window()
    RETURNING d.key
$$;

-- Writes any number of messages in one statement. Each element of messages describes one, with the bytes of its payload
-- at "offset" (from 0) and "length" of payloads. With lock_keys, writers of one key wait for each other until commit:
-- their messages are then in commit order although nothing else makes them wait. With unique_keys, messages whose dedup
-- key was enqueued before are left out. Their places are returned, from 1; null if there are none.
CREATE FUNCTION @schema@.enqueue_batch(
  messages json, payloads bytea, lock_keys boolean DEFAULT false, unique_keys boolean DEFAULT true) RETURNS bigint[]
  LANGUAGE plpgsql
AS $$
DECLARE
  repeats bigint[];
BEGIN
  IF lock_keys THEN
    -- In one global order, so that two batches cannot wait for each other.
    PERFORM pg_advisory_xact_lock(k.hash) FROM (
      SELECT DISTINCT hashtextextended(coalesce(nullif(m.key, ''), concat(m.aggregate_type, '/', m.aggregate_id)), 7) AS hash
      FROM json_to_recordset(messages) AS m(key text, aggregate_type text, aggregate_id text)
      WHERE concat(m.key, m.aggregate_type, m.aggregate_id) <> ''
      ORDER BY 1) k;
  END IF;
  IF unique_keys THEN
    WITH keyed AS (
      SELECT m.value ->> 'dedup_key' AS key, m.n, row_number() OVER (PARTITION BY m.value ->> 'dedup_key' ORDER BY m.n) AS nth
      FROM json_array_elements(messages) WITH ORDINALITY AS m(value, n)
      WHERE m.value ->> 'dedup_key' <> '' AND octet_length(m.value ->> 'dedup_key') <= @max_text@),  -- a longer one is refused below
    fresh AS MATERIALIZED (
      SELECT f FROM (SELECT array_agg(key) AS keys FROM keyed) k CROSS JOIN LATERAL @schema@.claim_keys(k.keys) f)
    SELECT array_agg(k.n ORDER BY k.n) INTO repeats
    FROM keyed k WHERE k.nth > 1 OR k.key NOT IN (SELECT f FROM fresh);
  END IF;
  INSERT INTO @schema@.messages (
    id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id,
    dedup_key, occurred_at, correlation_id, causation_id, headers, payload, deliver_after, priority)
  SELECT
    m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic, m.routing_key, m.tenant_id, m.content_type,
    m.schema_version, m.schema_id, m.dedup_key, m.occurred_at, m.correlation_id, m.causation_id, m.headers,
    substr(payloads, m."offset" + 1, m.length), m.deliver_after, m.priority
  FROM ROWS FROM (json_to_recordset(messages) AS (
    id uuid, type text, aggregate_type text, aggregate_id text, key text, topic text, routing_key text, tenant_id text,
    content_type text, schema_version integer, schema_id text, dedup_key text, occurred_at timestamptz,
    correlation_id text, causation_id text, headers jsonb, "offset" integer, length integer,
    deliver_after timestamptz, priority integer)) WITH ORDINALITY AS m(
    id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id,
    dedup_key, occurred_at, correlation_id, causation_id, headers, "offset", length, deliver_after, priority, n)
  WHERE repeats IS NULL OR m.n <> ALL (repeats);
  RETURN repeats;
END
$$;

-- One message, from any language: SELECT postrider.enqueue('order.placed', 'order', '42', '{"total": 7}').
-- The payload is kept as it is written; bytes that are not JSON go into payload_bytes. It returns null, and writes nothing,
-- when the dedup key was enqueued before.
CREATE FUNCTION @schema@.enqueue(
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
  id             uuid        DEFAULT gen_random_uuid(),
  deliver_after  timestamptz DEFAULT NULL,
  priority       integer     DEFAULT NULL
) RETURNS uuid
  LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
  IF (payload IS NULL) = (payload_bytes IS NULL) THEN
    RAISE EXCEPTION 'give either payload or payload_bytes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- A key that is too long is refused with its message.
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
    coalesce(payload_bytes, convert_to(payload::text, 'UTF8')), deliver_after, priority);
  RETURN id;
END
$$;
