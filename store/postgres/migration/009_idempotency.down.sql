DROP FUNCTION @schema@.idempotency_purge(timestamptz, integer);
DROP FUNCTION @schema@.idempotency_release(text, text, text, text, text);
DROP FUNCTION @schema@.idempotency_complete(text, text, text, text, bytea, text, double precision, double precision, bytea);
DROP FUNCTION @schema@.idempotency_claim(text, text, text, text, bytea, text, double precision, double precision);
DROP FUNCTION @schema@.idempotency_state(@schema@.idempotency_keys, bytea, text);
DROP TABLE @schema@.idempotency_keys;
