-- Two group roles, to be granted to the users that applications and relays log in as. A producer may add messages and
-- nothing else; a relay may read messages and keep the ledger, and cannot change or remove a message.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '@name@_producer') THEN
    CREATE ROLE "@name@_producer" NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '@name@_relay') THEN
    CREATE ROLE "@name@_relay" NOLOGIN;
  END IF;
END
$$;

GRANT USAGE ON SCHEMA @schema@ TO "@name@_producer", "@name@_relay";

GRANT USAGE ON SEQUENCE @schema@.message_seq TO "@name@_producer";
GRANT INSERT (id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version,
              schema_id, dedup_key, occurred_at, correlation_id, causation_id, headers, payload)
  ON @schema@.messages TO "@name@_producer";

GRANT SELECT ON ALL TABLES IN SCHEMA @schema@ TO "@name@_relay";
GRANT INSERT ON @schema@.feeds, @schema@.checkpoints, @schema@.members, @schema@.generation TO "@name@_relay";
GRANT EXECUTE ON FUNCTION @schema@.reclaim(), @schema@.sweep() TO "@name@_relay";
