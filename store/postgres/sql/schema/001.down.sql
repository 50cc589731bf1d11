DROP VIEW @schema@.idempotency_kept, @schema@.inbox_messages, @schema@.message_status, @schema@.cursors;
DROP TABLE @schema@.reconciler_again, @schema@.reconcilers, @schema@.saga_signals, @schema@.saga_steps, @schema@.sagas, @schema@.idempotency_keys,
  @schema@.inbox_trouble, @schema@.inbox_strays, @schema@.inbox, @schema@.consumer_heard, @schema@.consumers, @schema@.canaries, @schema@.audit,
  @schema@.job_results, @schema@.jobs, @schema@.problems, @schema@.suspects, @schema@.excluded, @schema@.deferred, @schema@.swept,
  @schema@.dedup_keys, @schema@.slices, @schema@.generation, @schema@.identity, @schema@.members, @schema@.checkpoints, @schema@.moves,
  @schema@.feeds, @schema@.messages;
DROP FUNCTION @schema@.inbox_seconds(), @schema@.count_canary(), @schema@.keep_audit(), @schema@.name_digest(text), @schema@.dedup_window(),
  @schema@.settled(xid8, bigint, pg_snapshot, pg_snapshot, bigint), @schema@.covers(text, text[], text), @schema@.low(bigint, bigint[]),
  @schema@.move_in(), @schema@.mark_copy(), @schema@.wrong_headers(jsonb), @schema@.new_id(), @schema@.set_ring(integer, integer), @schema@.slot_at(timestamptz),
  @schema@.slot_count(), @schema@.slot_period(), @schema@.shard_of(text, text, text, uuid, integer), @schema@.order_key(text, text, text),
  @schema@.shard_of(text, integer);
DROP SEQUENCE @schema@.canary_count, @schema@.message_seq;
