-- The log: insert-only, read by snapshot difference, emptied by TRUNCATE.

CREATE SEQUENCE @schema@.message_seq AS bigint CACHE 1;

-- The shard of a key, of so many. How many there are is the feed's business.
CREATE FUNCTION @schema@.shard_of(key text, shards integer) RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ((hashtextextended(key COLLATE "C", 0) & 9223372036854775807) % shards)::smallint;

-- The ordering key of a message: null if it has none. An empty text is none.
CREATE FUNCTION @schema@.order_key(key text, aggregate_type text, aggregate_id text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN key <> '' THEN key
              WHEN aggregate_type <> '' OR aggregate_id <> '' THEN coalesce(aggregate_type, '') || '/' || coalesce(aggregate_id, '') END;

-- The shard of a message is not kept, but found when it is read: producers do not pay for it.
CREATE FUNCTION @schema@.shard_of(key text, aggregate_type text, aggregate_id text, id uuid, shards integer) RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN @schema@.shard_of(coalesce(@schema@.order_key(key, aggregate_type, aggregate_id), id::text), shards);

-- Gives the ring of the log so many slots, each written for so many seconds, whoever writes and reads meanwhile. The numbers are in
-- functions, because producers ask for the slot with every message. A slot that is not of the ring any more is emptied, and stays.
CREATE FUNCTION @schema@.set_ring(slots integer, seconds integer) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF slots NOT BETWEEN 3 AND 128 OR seconds < 1 THEN
    RAISE EXCEPTION 'a ring has 3 to 128 slots of at least a second' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  EXECUTE format('CREATE OR REPLACE FUNCTION @schema@.slot_count() RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN %s::smallint', slots);
  EXECUTE format('CREATE OR REPLACE FUNCTION @schema@.slot_period() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN make_interval(secs => %s)', seconds);
  -- A permanent partition for each: no producer can ever fail for lack of one. Attaching it locks nobody out, as creating it there would.
  FOR slot IN 0 .. CASE WHEN to_regclass('@schema@.messages') IS NULL THEN 0 ELSE slots END - 1 LOOP
    CONTINUE WHEN to_regclass(format('@schema@.%I', 'messages_' || slot)) IS NOT NULL;
    -- Nothing here needs vacuum before it is truncated. While an old transaction is open, vacuum would read every slot
    -- again each time, in vain.
    EXECUTE format('CREATE TABLE @schema@.%I (LIKE @schema@.messages INCLUDING DEFAULTS INCLUDING INDEXES)
      WITH (autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_vacuum_insert_threshold = -1)', 'messages_' || slot);
    -- Every table has a primary key or this: under a publication of all tables the server refuses to delete from any other.
    EXECUTE format('ALTER TABLE @schema@.%I REPLICA IDENTITY FULL', 'messages_' || slot);
    EXECUTE format('ALTER TABLE @schema@.messages ATTACH PARTITION @schema@.%I FOR VALUES IN (%s)', 'messages_' || slot, slot);
  END LOOP;
  EXECUTE format('CREATE OR REPLACE FUNCTION @schema@.slot_at(t timestamptz) RETURNS smallint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (floor(date_part(''epoch'', t) / %s)::bigint %% %s)::smallint', seconds, slots);
END
$$;
REVOKE ALL ON FUNCTION @schema@.set_ring(integer, integer) FROM PUBLIC;
SELECT @schema@.set_ring(@slots@, @period@);

-- A new ID, of version 7: its first 48 bits are the time in milliseconds, so that the IDs of one time lie together in indexes.
CREATE FUNCTION @schema@.new_id() RETURNS uuid
  LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;

-- What is wrong with headers; null if nothing is. What is small as a whole need not be taken apart.
CREATE FUNCTION @schema@.wrong_headers(headers jsonb) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  size bigint;
BEGIN
  IF jsonb_typeof(headers) <> 'object' THEN
    RETURN 'headers must be a JSON object';
  ELSIF headers ? '' THEN
    RETURN 'headers has an empty name';
  ELSIF octet_length(headers::text) > @max_headers@ THEN
    SELECT sum(octet_length(h.key) + coalesce(octet_length(h.value), 0)) INTO size FROM jsonb_each_text(headers) h;
    IF size > @max_headers@ THEN
      RETURN 'headers has ' || size || ' bytes, more than @max_headers@';
    END IF;
  END IF;
  RETURN NULL;
END
$$;

-- A plain row with one index. xid MUST stand before seq: defaults are evaluated in column order,
-- and the cursor relies on a row's transaction ID having been assigned before its sequence number was drawn.
CREATE TABLE @schema@.messages (
  xid            xid8        NOT NULL DEFAULT pg_current_xact_id(),
  seq            bigint      NOT NULL DEFAULT nextval('@schema@.message_seq'),
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  occurred_at    timestamptz,
  id             uuid        NOT NULL DEFAULT @schema@.new_id(),
  schema_version integer     NOT NULL DEFAULT 1,
  slot           smallint    NOT NULL DEFAULT @schema@.slot_at(now()),
  type           varchar(@max_text@) NOT NULL,
  aggregate_type varchar(@max_text@),
  aggregate_id   varchar(@max_text@),
  key            varchar(@max_text@),
  topic          varchar(@max_text@),
  routing_key    varchar(@max_text@),
  tenant_id      varchar(@max_text@),
  content_type   varchar(@max_text@),
  schema_id      varchar(@max_text@),
  dedup_key      varchar(@max_text@),
  correlation_id varchar(@max_text@),
  causation_id   varchar(@max_text@),
  headers        jsonb,
  payload        bytea       NOT NULL DEFAULT '',
  deliver_after  timestamptz,
  priority       integer
) PARTITION BY LIST ((
  -- Whatever way a message is written, nothing is larger than the core allows, but that texts are counted in characters: what is has
  -- no partition. A trigger costs the server four times as much, and a constraint shows the row that it refuses. Every term here is
  -- planned anew for every statement, and a function in SQL would be parsed anew.
  CASE WHEN type <> '' AND octet_length(payload) <= @max_payload@ AND (headers IS NULL OR @schema@.wrong_headers(headers) IS NULL) THEN slot END));

-- The only index, because every index is paid by the producers.
CREATE INDEX messages_seq ON @schema@.messages (seq);

SELECT @schema@.set_ring(@slots@, @period@);

CREATE TABLE @schema@.feeds (
  name        text        PRIMARY KEY CHECK (name NOT LIKE 'inbox/%'),  -- under that name consumers set messages aside
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  paused      boolean     NOT NULL DEFAULT false,
  destination text,                                                     -- where its relays send to; null: none of them has said
  shards      smallint    NOT NULL DEFAULT @shards@ CHECK (shards BETWEEN 1 AND 1024)
);

-- Feeds that are about to have another number of shards. First their relays release all cursors; then each cursor is read up to the
-- same place, s; then what is set aside goes to its new shard, up to moved so far.
CREATE TABLE @schema@.moves (
  feed   text        PRIMARY KEY,
  shards smallint    NOT NULL CHECK (shards BETWEEN 1 AND 1024),
  at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  s      pg_snapshot,
  lo     bigint,
  starts bigint[],
  hi     bigint,
  moved  bigint
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
  -- Between two windows: everything that s1 sees was passed. A message at or below lo is seen by s1, or belongs to a transaction
  -- that s1 lists as in flight; starts has, for each of these, a number that all its messages lie above.
  s1       pg_snapshot NOT NULL,
  lo       bigint      NOT NULL,
  starts   bigint[]    NOT NULL,
  -- Inside a window: of what s2 sees and s1 does not, what lies up to last was passed, and nothing lies above hi.
  s2       pg_snapshot,
  lo2      bigint      NOT NULL DEFAULT 0,
  starts2  bigint[]    NOT NULL DEFAULT '{}',
  last     bigint      NOT NULL DEFAULT 0,
  hi       bigint      NOT NULL DEFAULT 0,
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
ALTER TABLE @schema@.members REPLICA IDENTITY FULL;  -- a member has several rows, and nothing needs a key of them

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

-- The time is a number: as text it would follow the session's TimeZone, and two sessions would take each other's generation for a crash.
CREATE FUNCTION @schema@.current_generation() RETURNS text
  LANGUAGE sql STABLE
  AS $$ SELECT g.id::text || ' ' || extract(epoch FROM pg_postmaster_start_time()) FROM @schema@.generation g $$;

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

-- A snapshot sees all messages up to here, if this is its floor, and these are where the transactions begin that it lists.
CREATE FUNCTION @schema@.low(lo bigint, starts bigint[]) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (SELECT least(lo, min(s)) FROM unnest(starts) s);

-- Feed and shard are not those of the checkpoint, though they are the same: who asks for one feed looks at no other's.
CREATE VIEW @schema@.cursors AS
  SELECT f.name AS feed, s.shard, c.n, c.member, c.released, c.at, c.until, c.s1, c.lo, c.starts, c.s2, c.lo2, c.starts2, c.last, c.hi, c.crashes,
         s.base, s.tenant, s.others, f.shards,
         greatest(@schema@.low(c.lo, c.starts), CASE WHEN c.s2 IS NOT NULL THEN least(c.last, @schema@.low(c.lo2, c.starts2)) END) AS passed  -- nothing up to here is left to deliver
  FROM @schema@.feeds f
  CROSS JOIN LATERAL (
    SELECT b::smallint AS shard, b::smallint AS base, NULL AS tenant,
           (SELECT array_agg(x.tenant ORDER BY x.tenant) FROM @schema@.slices x WHERE x.feed = f.name AND x.base = b) AS others
    FROM generate_series(0, f.shards - 1) b
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
