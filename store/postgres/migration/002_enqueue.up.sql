-- What producers call. Everything here runs with the caller's rights.

-- Writes any number of messages in one statement. Each element of messages describes one, with the bytes of its payload
-- at "offset" (from 0) and "length" of payloads. With lock_keys, writers of one key wait for each other until commit:
-- their messages are then in commit order although nothing else makes them wait.
CREATE FUNCTION @schema@.enqueue_batch(messages json, payloads bytea, lock_keys boolean DEFAULT false) RETURNS bigint
  LANGUAGE plpgsql
AS $$
DECLARE
  written bigint;
BEGIN
  IF lock_keys THEN
    -- In one global order, so that two batches cannot wait for each other.
    PERFORM pg_advisory_xact_lock(k.hash) FROM (
      SELECT DISTINCT hashtextextended(coalesce(m.key, m.aggregate_type || '/' || m.aggregate_id), 7) AS hash
      FROM json_to_recordset(messages) AS m(key text, aggregate_type text, aggregate_id text)
      WHERE coalesce(m.key, m.aggregate_type || '/' || m.aggregate_id) IS NOT NULL
      ORDER BY 1) k;
  END IF;
  INSERT INTO @schema@.messages (
    id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id,
    dedup_key, occurred_at, correlation_id, causation_id, headers, payload)
  SELECT
    m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic, m.routing_key, m.tenant_id, m.content_type,
    m.schema_version, m.schema_id, m.dedup_key, m.occurred_at, m.correlation_id, m.causation_id, m.headers,
    substr(payloads, m."offset" + 1, m.length)
  FROM json_to_recordset(messages) AS m(
    id uuid, type text, aggregate_type text, aggregate_id text, key text, topic text, routing_key text, tenant_id text,
    content_type text, schema_version integer, schema_id text, dedup_key text, occurred_at timestamptz,
    correlation_id text, causation_id text, headers jsonb, "offset" integer, length integer);
  GET DIAGNOSTICS written = ROW_COUNT;
  RETURN written;
END
$$;

-- One message, from any language: SELECT postrider.enqueue('order.placed', 'order', '42', '{"total": 7}').
-- The payload is kept as it is written; bytes that are not JSON go into payload_bytes.
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
  id             uuid        DEFAULT gen_random_uuid()
) RETURNS uuid
  LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
  IF (payload IS NULL) = (payload_bytes IS NULL) THEN
    RAISE EXCEPTION 'give either payload or payload_bytes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- Not a constraint of the table: the server would read that anew for every statement that inserts.
  IF jsonb_typeof(headers) <> 'object' THEN
    RAISE EXCEPTION 'headers must be a JSON object' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO @schema@.messages (
    id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id,
    dedup_key, occurred_at, correlation_id, causation_id, headers, payload)
  VALUES (
    id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id,
    coalesce(content_type, CASE WHEN payload IS NULL THEN 'application/octet-stream' ELSE 'application/json' END),
    schema_version, schema_id, dedup_key, occurred_at, correlation_id, causation_id, headers,
    coalesce(payload_bytes, convert_to(payload::text, 'UTF8')));
  RETURN id;
END
$$;
