DROP FUNCTION @schema@.enqueue(text, text, text, json, bytea, text, text, text, text, text, jsonb, integer, text, text,
  timestamptz, text, text, uuid, timestamptz, integer);
DROP FUNCTION @schema@.check_message(uuid, text, integer, jsonb, bytea);
DROP FUNCTION @schema@.lock_keys(text[]);
DROP FUNCTION @schema@.claim_keys(text[]);
DROP FUNCTION @schema@.dedup_window();
DROP TABLE @schema@.dedup_keys;
