DROP FUNCTION @schema@.settled(xid8, bigint, pg_snapshot, pg_snapshot, bigint);
DROP FUNCTION @schema@.covers(text, text[], text);
DROP VIEW @schema@.cursors;
DROP FUNCTION @schema@.low(bigint, bigint[]);
DROP TABLE @schema@.slices;
DROP FUNCTION @schema@.current_generation();
DROP FUNCTION @schema@.at_home(), @schema@.move_in();
DROP TABLE @schema@.generation, @schema@.identity, @schema@.members, @schema@.checkpoints, @schema@.moves, @schema@.feeds, @schema@.messages;
DROP FUNCTION @schema@.wrong_headers(jsonb);
DROP FUNCTION @schema@.set_ring(integer, integer), @schema@.slot_at(timestamptz), @schema@.slot_count(), @schema@.slot_period(),
  @schema@.shard_of(text, text, text, uuid, integer), @schema@.order_key(text, text, text), @schema@.shard_of(text, integer),
  @schema@.new_id();
DROP SEQUENCE @schema@.message_seq;
