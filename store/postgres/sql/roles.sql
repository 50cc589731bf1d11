-- Four group roles, to be granted to the users that applications, relays and operators log in as.
--
--   producer  adds messages and does nothing else
--   consumer  keeps inboxes, idempotency keys, sagas and reconcilers
--   relay     reads messages, and keeps the ledger and deferred messages; it cannot change or remove a
--             message of the log
--   operator  reads everything except stored answers, and acts through functions that write to the audit log
--
-- No role can change the audit log.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '@name@_producer') THEN
    CREATE ROLE "@name@_producer" NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '@name@_consumer') THEN
    CREATE ROLE "@name@_consumer" NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '@name@_relay') THEN
    CREATE ROLE "@name@_relay" NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '@name@_operator') THEN
    CREATE ROLE "@name@_operator" NOLOGIN;
  END IF;
END
$$;

GRANT USAGE ON SCHEMA @schema@ TO "@name@_producer", "@name@_consumer", "@name@_relay", "@name@_operator";

-- All roles may call the functions that run with the caller's rights, except those that change the
-- ledger's identity or read stored answers. The explicit grant is for databases whose default
-- privileges take EXECUTE from PUBLIC.
DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT p.oid FROM pg_proc p
           WHERE p.pronamespace = '@schema@'::regnamespace AND NOT p.prosecdef AND p.proname NOT IN ('move_in', 'rebase', 'idempotency_state')
             AND NOT has_function_privilege('public', p.oid, 'EXECUTE')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO "@name@_producer", "@name@_consumer", "@name@_relay", "@name@_operator"', f);
  END LOOP;
END
$$;

GRANT USAGE ON SEQUENCE @schema@.message_seq TO "@name@_producer";
GRANT INSERT (id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version,
              schema_id, dedup_key, occurred_at, correlation_id, causation_id, headers, payload,
              deliver_after, priority)
  ON @schema@.messages TO "@name@_producer";
GRANT EXECUTE ON FUNCTION @schema@.claim_keys(text[]) TO "@name@_producer";

GRANT SELECT, INSERT ON @schema@.generation TO "@name@_producer", "@name@_consumer";

GRANT SELECT ON @schema@.consumers, @schema@.inbox, @schema@.inbox_strays, @schema@.inbox_trouble, @schema@.inbox_messages TO "@name@_consumer";
DO $$
BEGIN
  FOR slot IN 0 .. 9 LOOP  -- clients insert into the slots themselves
    EXECUTE format('GRANT SELECT, INSERT ON @schema@.%I TO "@name@_consumer"', 'inbox_' || slot);
  END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION @schema@.open_inbox(text), @schema@.heard(text, text), @schema@.claim(integer, text, uuid[], text[], boolean),
  @schema@.inbox_defer(integer, text, json, bytea, text, boolean, integer, double precision, text),
  @schema@.take_due(text), @schema@.next_due(text),
  @schema@.inbox_conclude(text, bigint, bigint, boolean, text, integer, double precision, text), @schema@.sweep_inbox(),
  @schema@.sweep_strays()
  TO "@name@_consumer";

GRANT SELECT ON ALL TABLES IN SCHEMA @schema@ TO "@name@_relay";
GRANT INSERT ON @schema@.checkpoints, @schema@.members, @schema@.generation TO "@name@_relay";
GRANT EXECUTE ON FUNCTION @schema@.check_home(text), @schema@.reclaim(bigint), @schema@.sweep(), @schema@.split(text, smallint, text),
  @schema@.merge(text, smallint), @schema@.advance_move(text), @schema@.canary(interval),
  @schema@.open_feed(text, text, boolean, boolean, timestamptz, text, boolean, text[], bigint, bigint) TO "@name@_relay";
GRANT EXECUTE ON FUNCTION
  @schema@.defer(text, uuid, smallint[], smallint[], bigint[], text[], boolean[], integer[], double precision[], text[], text[], boolean[],
    double precision[]),
  @schema@.conclude(text, uuid, smallint[], bigint[], boolean[], text[], integer[], double precision[], text[], text[], boolean[],
    double precision[]),
  @schema@.suspect(text, uuid, smallint, bigint), @schema@.report(text, text[], bigint[], text[]) TO "@name@_relay";
REVOKE INSERT, UPDATE, DELETE ON @schema@.deferred, @schema@.suspects, @schema@.problems, @schema@.job_results FROM "@name@_relay";
REVOKE ALL ON @schema@.audit FROM "@name@_relay";

GRANT SELECT ON ALL TABLES IN SCHEMA @schema@ TO "@name@_operator";
GRANT EXECUTE ON FUNCTION
  @schema@.act_for(text, text, text, jsonb, text[], bigint[]), @schema@.exclude(text, text, text, text, bigint),
  @schema@.edit(text, text, text, uuid, text, text, text, text, jsonb, bytea), @schema@.reveal(text, text, text, uuid), @schema@.add_feed(text, text, text, boolean, bigint, bigint),
  @schema@.remove_feed(text, text, text), @schema@.pause_feed(text, text, text, boolean),
  @schema@.change_shards(text, text, text, integer), @schema@.advance_move(text),
  @schema@.rewind(text, text, text, timestamptz, uuid),
  @schema@.start_replay(text, text, boolean, jsonb, integer, bigint, bigint), @schema@.set_replay(text, text, bigint, text),
  @schema@.claim_replay(bigint), @schema@.step_replay(bigint, text[], bigint[], boolean)
  TO "@name@_operator";

GRANT SELECT, INSERT, UPDATE, DELETE ON @schema@.reconcilers, @schema@.reconciler_again TO "@name@_consumer";
GRANT EXECUTE ON FUNCTION @schema@.resend_for(text, text, text, json) TO "@name@_relay", "@name@_operator";
GRANT EXECUTE ON FUNCTION @schema@.record_reconciler(text, text, text, bigint, bigint) TO "@name@_consumer", "@name@_operator";

GRANT SELECT ON SEQUENCE @schema@.message_seq, @schema@.canary_count TO "@name@_relay", "@name@_operator";
GRANT EXECUTE ON FUNCTION @schema@.oldest_transactions() TO "@name@_relay", "@name@_operator";

-- Relays and operators cannot read stored answers. Consumers read them one key at a time, through
-- functions.
GRANT EXECUTE ON FUNCTION
  @schema@.idempotency_claim(text, text, text, text, bytea, text, double precision, double precision),
  @schema@.idempotency_complete(text, text, text, text, bytea, text, double precision, double precision, bytea),
  @schema@.idempotency_release(text, text, text, text, text), @schema@.idempotency_purge(timestamptz, integer)
  TO "@name@_consumer";
REVOKE ALL ON @schema@.idempotency_keys FROM "@name@_relay", "@name@_operator";
REVOKE ALL ON @schema@.idempotency_kept FROM "@name@_relay";

-- Relays cannot read sagas, which hold the application's data.
GRANT SELECT, INSERT, UPDATE, DELETE ON @schema@.sagas, @schema@.saga_steps, @schema@.saga_signals TO "@name@_consumer";
REVOKE ALL ON @schema@.sagas, @schema@.saga_steps, @schema@.saga_signals FROM "@name@_relay";
GRANT EXECUTE ON FUNCTION @schema@.act_on_saga(text, text, text, text, text, text) TO "@name@_operator";
