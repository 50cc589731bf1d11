DROP FUNCTION @schema@.enqueue(text, text, text, json, bytea, text, text, text, text, text, jsonb, integer, text, text,
  timestamptz, text, text, uuid);
DROP FUNCTION @schema@.enqueue_batch(json, bytea, boolean);
