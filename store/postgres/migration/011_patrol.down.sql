DROP FUNCTION @schema@.record_patrol(text, text, text, bigint, bigint);
DROP FUNCTION @schema@.resend_for(text, text, text, json);
DROP FUNCTION @schema@.again_patrol(text, json, integer, interval, integer);
DROP FUNCTION @schema@.finish_patrol(text, bigint, timestamptz, interval, text);
DROP FUNCTION @schema@.count_patrol(text, bigint, bigint, bigint);
DROP FUNCTION @schema@.claim_patrol(text, text, interval, boolean);
DROP TABLE @schema@.patrol_again;
DROP TABLE @schema@.patrols;
