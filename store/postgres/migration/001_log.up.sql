-- The log: insert-only, read by snapshot difference, emptied by TRUNCATE.

CREATE SEQUENCE @schema@.message_seq AS bigint CACHE 1;

CREATE FUNCTION @schema@.shard_count() RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN @shards@::smallint;

CREATE FUNCTION @schema@.shard_of(key text) RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ((hashtextextended(key COLLATE "C", 0) & 9223372036854775807) % @shards@)::smallint;

CREATE FUNCTION @schema@.slot_count() RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN @slots@::smallint;

CREATE FUNCTION @schema@.slot_at(t timestamptz) RETURNS smallint
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN (floor(date_part('epoch', t) / @period@)::bigint % @slots@)::smallint;

-- A new ID, of version 7: its first 48 bits are the time in milliseconds, so that the IDs of one time lie together in indexes.
CREATE FUNCTION @schema@.new_id() RETURNS uuid
  LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;

-- xid MUST stand before seq: defaults are evaluated in column order, and the cursor relies on a row's transaction ID
-- having been assigned before its sequence number was drawn.
CREATE TABLE @schema@.messages (
  xid            xid8        NOT NULL DEFAULT pg_current_xact_id(),
  seq            bigint      NOT NULL DEFAULT nextval('@schema@.message_seq'),
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  occurred_at    timestamptz,
  id             uuid        NOT NULL DEFAULT @schema@.new_id(),
  schema_version integer     NOT NULL DEFAULT 1,
  slot           smallint    NOT NULL DEFAULT @schema@.slot_at(now()),
  shard          smallint    NOT NULL,
  type           text        NOT NULL,
  aggregate_type text,
  aggregate_id   text,
  key            text,
  topic          text,
  routing_key    text,
  tenant_id      text,
  content_type   text,
  schema_id      text,
  dedup_key      text,
  correlation_id text,
  causation_id   text,
  headers        jsonb,
  payload        bytea       NOT NULL DEFAULT '',
  deliver_after  timestamptz,
  priority       integer
) PARTITION BY LIST (slot);

-- Whatever way a message is written, its shard follows from its key, an empty text is none, and nothing is larger than the core
-- allows. A trigger, because the server would read and compile the expressions of generated columns and constraints anew for
-- every statement, and a constraint would show the row that it refuses.
CREATE FUNCTION @schema@.set_shard() RETURNS trigger
  LANGUAGE plpgsql
AS $$
DECLARE
  -- All texts: no function call for each, because every transaction would prepare all of them anew. Two separators in a row are
  -- an empty text.
  texts text := concat_ws(E'\x01', '', NEW.type, NEW.aggregate_type, NEW.aggregate_id, NEW.key, NEW.topic, NEW.routing_key,
    NEW.tenant_id, NEW.content_type, NEW.schema_id, NEW.dedup_key, NEW.correlation_id, NEW.causation_id, '');
  wrong record;
BEGIN
  -- One test, which nearly every message passes. The empty object makes the server unpack headers that are compressed.
  IF octet_length(texts) > @max_text@ OR strpos(texts, E'\x01\x01') > 0 OR octet_length(NEW.payload) > @max_payload@
     OR num_nulls(NEW.type, NEW.payload, NEW.id, NEW.schema_version) > 0 OR NEW.schema_version < 0
     OR num_nulls(NEW.aggregate_type, NEW.aggregate_id) = 1
     OR jsonb_typeof(NEW.headers) <> 'object' OR NEW.headers ? '' OR pg_column_size(NEW.headers || '{}') > @max_headers@
  THEN
    IF strpos(texts, E'\x01\x01') > 0 THEN
      NEW.aggregate_type := nullif(NEW.aggregate_type, '');
      NEW.aggregate_id := nullif(NEW.aggregate_id, '');
      NEW.key := nullif(NEW.key, '');
      NEW.topic := nullif(NEW.topic, '');
      NEW.routing_key := nullif(NEW.routing_key, '');
      NEW.tenant_id := nullif(NEW.tenant_id, '');
      NEW.content_type := nullif(NEW.content_type, '');
      NEW.schema_id := nullif(NEW.schema_id, '');
      NEW.dedup_key := nullif(NEW.dedup_key, '');
      NEW.correlation_id := nullif(NEW.correlation_id, '');
      NEW.causation_id := nullif(NEW.causation_id, '');
    END IF;
    IF octet_length(texts) > @max_text@ THEN
      SELECT t.name, t.size INTO wrong FROM (
        VALUES ('type', octet_length(NEW.type)),
               ('aggregate_type', octet_length(NEW.aggregate_type)),
               ('aggregate_id', octet_length(NEW.aggregate_id)),
               ('key', octet_length(NEW.key)),
               ('topic', octet_length(NEW.topic)),
               ('routing_key', octet_length(NEW.routing_key)),
               ('tenant_id', octet_length(NEW.tenant_id)),
               ('content_type', octet_length(NEW.content_type)),
               ('schema_id', octet_length(NEW.schema_id)),
               ('dedup_key', octet_length(NEW.dedup_key)),
               ('correlation_id', octet_length(NEW.correlation_id)),
               ('causation_id', octet_length(NEW.causation_id))) t(name, size)
        WHERE t.size > @max_text@ LIMIT 1;
      IF FOUND THEN
        RAISE EXCEPTION 'invalid message: % has % bytes, more than @max_text@', wrong.name, wrong.size
          USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = wrong.name;
      END IF;
    END IF;
    IF octet_length(NEW.payload) > @max_payload@ THEN
      RAISE EXCEPTION 'invalid message: payload has % bytes, more than @max_payload@', octet_length(NEW.payload)
        USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = 'payload';
    END IF;
    IF NEW.type = '' OR NEW.type IS NULL OR NEW.payload IS NULL OR NEW.id IS NULL OR NEW.schema_version IS NULL THEN
      texts := CASE WHEN NEW.payload IS NULL THEN 'payload' WHEN NEW.id IS NULL THEN 'id'
                    WHEN NEW.schema_version IS NULL THEN 'schema_version' ELSE 'type' END;
      RAISE EXCEPTION 'invalid message: % is empty', texts
        USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = texts;
    END IF;
    IF NEW.schema_version < 0 THEN
      RAISE EXCEPTION 'invalid message: schema_version is below 0'
        USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = 'schema_version';
    END IF;
    IF jsonb_typeof(NEW.headers) <> 'object' THEN
      RAISE EXCEPTION 'invalid message: headers must be a JSON object'
        USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = 'headers';
    END IF;
    IF NEW.headers ? '' THEN
      RAISE EXCEPTION 'invalid message: headers has an empty name'
        USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = 'headers';
    END IF;
    -- What is small as a whole need not be taken apart.
    IF pg_column_size(NEW.headers || '{}') > @max_headers@ THEN
      SELECT sum(octet_length(h.key) + coalesce(octet_length(h.value), 0)) AS size INTO wrong FROM jsonb_each_text(NEW.headers) h;
      IF wrong.size > @max_headers@ THEN
        RAISE EXCEPTION 'invalid message: headers has % bytes, more than @max_headers@', wrong.size
          USING ERRCODE = 'check_violation', TABLE = 'messages', COLUMN = 'headers';
      END IF;
    END IF;
    -- Half of a name is a key too.
    IF NEW.key IS NULL AND (NEW.aggregate_type IS NULL) <> (NEW.aggregate_id IS NULL) THEN
      NEW.key := concat(NEW.aggregate_type, '/', NEW.aggregate_id);
    END IF;
  END IF;
  NEW.shard := @schema@.shard_of(coalesce(NEW.key, NEW.aggregate_type || '/' || NEW.aggregate_id, NEW.id::text));
  RETURN NEW;
END
$$;
CREATE TRIGGER set_shard BEFORE INSERT ON @schema@.messages FOR EACH ROW EXECUTE FUNCTION @schema@.set_shard();

-- Every index is paid by the producers. (xid, seq) finds what was in flight at a snapshot, (shard, seq) all the rest.
CREATE INDEX messages_shard_seq ON @schema@.messages (shard, seq);
CREATE INDEX messages_xid_seq ON @schema@.messages (xid, seq);

-- A ring of permanent partitions: no producer can ever fail for lack of one.
DO $$
BEGIN
  FOR slot IN 0 .. @slots@ - 1 LOOP
    -- Nothing here needs vacuum before it is truncated. While an old transaction is open, vacuum would read every slot
    -- again each time, in vain.
    EXECUTE format('CREATE TABLE @schema@.%I PARTITION OF @schema@.messages FOR VALUES IN (%s)
      WITH (autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_vacuum_insert_threshold = -1)', 'messages_' || slot, slot);
  END LOOP;
END
$$;

CREATE TABLE @schema@.feeds (
  name        text        PRIMARY KEY CHECK (name NOT LIKE 'inbox/%'),  -- under that name consumers set messages aside
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  paused      boolean     NOT NULL DEFAULT false,
  destination text                                                      -- where its relays send to; null: none of them has said
);

-- The ledger: cursor, lease and fence. The newest row of a shard is its state; two members that both believe to hold a
-- shard collide on the primary key.
CREATE TABLE @schema@.checkpoints (
  feed     text        NOT NULL,
  shard    smallint    NOT NULL,
  n        bigint      NOT NULL,
  member   uuid,
  released boolean     NOT NULL DEFAULT false,
  at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  until    timestamptz NOT NULL,
  lo       bigint      NOT NULL,
  lo2      bigint      NOT NULL DEFAULT 0,
  last     bigint      NOT NULL DEFAULT 0,
  s1       pg_snapshot NOT NULL,
  s2       pg_snapshot,
  crashes  smallint    NOT NULL DEFAULT 0,  -- holders in a row that were not heard from again, without any progress
  PRIMARY KEY (feed, shard, n)
);

CREATE TABLE @schema@.members (
  feed   text        NOT NULL,
  member uuid        NOT NULL,
  name   text        NOT NULL,
  at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  until  timestamptz NOT NULL,
  gone   boolean     NOT NULL DEFAULT false
);
CREATE INDEX members_feed_until ON @schema@.members (feed, until);

-- Which database the transaction IDs of messages and checkpoints belong to. row_xid is the xmin of this row: where they
-- differ the row was not carried over with its pages, as by a clone or pg_upgrade, but written again.
CREATE TABLE @schema@.identity (
  one               boolean     PRIMARY KEY DEFAULT true CHECK (one),
  system_identifier bigint      NOT NULL,
  database_oid      oid         NOT NULL,
  row_xid           xid,
  since             timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE FUNCTION @schema@.move_in() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  DELETE FROM @schema@.identity;
  INSERT INTO @schema@.identity (system_identifier, database_oid)
    SELECT s.system_identifier, d.oid FROM pg_control_system() s, pg_database d WHERE d.datname = current_database();
  UPDATE @schema@.identity SET row_xid = xmin;  -- of the same subtransaction, so the new row has the same
END
$$;
REVOKE ALL ON FUNCTION @schema@.move_in() FROM PUBLIC;
SELECT @schema@.move_in();

CREATE FUNCTION @schema@.at_home() RETURNS boolean
  LANGUAGE sql STABLE
  AS $$
    SELECT EXISTS (
      SELECT FROM @schema@.identity i, pg_control_system() s, pg_database d
      WHERE d.datname = current_database() AND i.system_identifier = s.system_identifier AND i.database_oid = d.oid)
  $$;

-- Unlogged, so that crash recovery and promotion empty it: a reader that finds another row here than before knows that
-- sequence numbers and transaction IDs it has seen may be handed out again, even if a pooler hid the crash from it.
CREATE UNLOGGED TABLE @schema@.generation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id  uuid    NOT NULL DEFAULT gen_random_uuid()
);

CREATE FUNCTION @schema@.current_generation() RETURNS text
  LANGUAGE sql STABLE
  AS $$ SELECT g.id::text || ' ' || pg_postmaster_start_time()::text FROM @schema@.generation g $$;

-- A tenant whose backlog would hold up the others of a shard is read apart from them: a slice, with a number behind those of
-- the shards and a cursor of its own. Its shard is read without that tenant meanwhile.
CREATE TABLE @schema@.slices (
  feed   text     NOT NULL,
  shard  smallint NOT NULL,
  base   smallint NOT NULL,
  tenant text     NOT NULL,
  PRIMARY KEY (feed, shard),
  UNIQUE (feed, base, tenant)
);

-- Feed and shard are not those of the checkpoint, though they are the same: who asks for one feed looks at no other's.
CREATE VIEW @schema@.cursors AS
  SELECT f.name AS feed, s.shard, c.n, c.member, c.released, c.at, c.until, c.lo, c.lo2, c.last, c.s1, c.s2, c.crashes,
         s.base, s.tenant, s.others
  FROM @schema@.feeds f
  CROSS JOIN LATERAL (
    SELECT b::smallint AS shard, b::smallint AS base, NULL AS tenant,
           (SELECT array_agg(x.tenant ORDER BY x.tenant) FROM @schema@.slices x WHERE x.feed = f.name AND x.base = b) AS others
    FROM generate_series(0, @schema@.shard_count() - 1) b
    UNION ALL
    SELECT x.shard, x.base, x.tenant, NULL FROM @schema@.slices x WHERE x.feed = f.name) s
  CROSS JOIN LATERAL (
    SELECT * FROM @schema@.checkpoints c
    WHERE c.feed = f.name AND c.shard = s.shard
    ORDER BY c.n DESC LIMIT 1) c;

-- Whether a cursor is that of a tenant's messages.
CREATE FUNCTION @schema@.covers(tenant text, others text[], of_tenant text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN tenant IS NULL THEN coalesce(of_tenant <> ALL (others), true) ELSE coalesce(of_tenant = tenant, false) END;

CREATE FUNCTION @schema@.settled(xid xid8, seq bigint, s1 pg_snapshot, s2 pg_snapshot, last bigint) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_visible_in_snapshot(xid, s1) OR coalesce(seq <= last AND pg_visible_in_snapshot(xid, s2), false);
