DROP FUNCTION @schema@.leave_feed(text, uuid);
DROP FUNCTION @schema@.settle(text, uuid, interval, text, boolean, smallint[], bigint[], text[], bigint[], text[], text[], bigint[],
  text[], bigint[], bigint[], smallint[]);
DROP FUNCTION @schema@.balance(text, uuid, text, interval);
DROP FUNCTION @schema@.check_identity();
DROP FUNCTION @schema@.read_payloads(bigint[]);
DROP FUNCTION @schema@.read_log(boolean, integer, integer, text[], text[], jsonb[], integer[], text[], bigint[], text[], text[],
  bigint[], bigint[]);
