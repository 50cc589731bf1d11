-- The tables, the views of them, and the functions that these are made with. What is here changes
-- with a new version only; all other functions are code, and are replaced by every "migrate up".

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

-- Gives the ring of the log so many slots, each written for so many seconds, whoever writes and
-- reads meanwhile. The numbers are in functions, because producers ask for the slot with every
-- message. A slot that is not of the ring any more is emptied, and stays.
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
  -- A permanent partition for each: no producer can ever fail for lack of one. Attaching it locks
  -- nobody out, as creating it there would.
  FOR slot IN 0 .. CASE WHEN to_regclass('@schema@.messages') IS NULL THEN 0 ELSE slots END - 1 LOOP
    CONTINUE WHEN to_regclass(format('@schema@.%I', 'messages_' || slot)) IS NOT NULL;
    -- Nothing here needs vacuum before it is truncated. While an old transaction is open, vacuum
    -- would read every slot again each time, in vain.
    EXECUTE format('CREATE TABLE @schema@.%I (LIKE @schema@.messages INCLUDING DEFAULTS INCLUDING INDEXES)
      WITH (autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_vacuum_insert_threshold = -1)', 'messages_' || slot);
    -- Every table has a primary key or this: under a publication of all tables the server refuses
    -- to delete from any other.
    EXECUTE format('ALTER TABLE @schema@.%I REPLICA IDENTITY FULL', 'messages_' || slot);
    EXECUTE format('ALTER TABLE @schema@.messages ATTACH PARTITION @schema@.%I FOR VALUES IN (%s)', 'messages_' || slot, slot);
  END LOOP;
  EXECUTE format('CREATE OR REPLACE FUNCTION @schema@.slot_at(t timestamptz) RETURNS smallint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (floor(date_part(''epoch'', t) / %s)::bigint %% %s)::smallint', seconds, slots);
END
$$;
REVOKE ALL ON FUNCTION @schema@.set_ring(integer, integer) FROM PUBLIC;

SELECT @schema@.set_ring(@slots@, @period@);

-- A new ID, of version 7: its first 48 bits are the time in milliseconds, so that the IDs of one
-- time lie together in indexes.
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
-- and the cursor relies on a row's transaction ID having been assigned before its sequence number
-- was drawn.
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
  -- Whatever way a message is written, nothing is larger than the core allows, but that texts are
  -- counted in characters: what is has no partition. A trigger costs the server four times as much,
  -- and a constraint shows the row that it refuses. Every term here is planned anew for every
  -- statement, and a function in SQL would be parsed anew.
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

-- Feeds that are about to have another number of shards. First their relays release all cursors;
-- then each cursor is read up to the same place, s; then what is set aside goes to its new shard,
-- up to moved so far.
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

-- The ledger: cursor, lease and fence. The newest row of a shard is its state; two members that
-- both believe to hold a shard collide on the primary key.
CREATE TABLE @schema@.checkpoints (
  feed     text        NOT NULL,
  shard    smallint    NOT NULL,
  n        bigint      NOT NULL,
  member   uuid,
  released boolean     NOT NULL DEFAULT false,
  at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  until    timestamptz NOT NULL,
  -- Between two windows: everything that s1 sees was passed. A message at or below lo is seen by
  -- s1, or belongs to a transaction that s1 lists as in flight; starts has, for each of these, a
  -- number that all its messages lie above.
  s1       pg_snapshot NOT NULL,
  lo       bigint      NOT NULL,
  starts   bigint[]    NOT NULL,
  -- Inside a window: of what s2 sees and s1 does not, what lies up to last was passed, and nothing
  -- lies above hi.
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

-- Which database the transaction IDs of messages and checkpoints belong to. row_xid is the xmin of
-- this row: where they differ the row was not carried over with its pages, as by a clone or
-- pg_upgrade, but written again. home is what the operator calls the place, and what relays here
-- are told: a copy of the server's files is the same database in all that can be asked.
CREATE TABLE @schema@.identity (
  one               boolean     PRIMARY KEY DEFAULT true CHECK (one),
  system_identifier bigint      NOT NULL,
  database_oid      oid         NOT NULL,
  row_xid           xid,
  home              text,
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

-- Logical replication brings positions of another database here, where the schema may have been
-- laid out before, with an identity of its own that stays: relays would skip what is left, or send
-- what the original sends. The trigger fires for what replication writes, and never for relays.
CREATE FUNCTION @schema@.mark_copy() RETURNS trigger
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE @schema@.identity SET system_identifier = 0 WHERE system_identifier <> 0;
  RETURN NULL;
END
$$;

CREATE TRIGGER mark_copy AFTER INSERT ON @schema@.checkpoints FOR EACH ROW EXECUTE FUNCTION @schema@.mark_copy();
ALTER TABLE @schema@.checkpoints ENABLE REPLICA TRIGGER mark_copy;

-- Unlogged, so that crash recovery and promotion empty it: a reader that finds another row here
-- than before knows that sequence numbers and transaction IDs it has seen may be handed out again,
-- even if a pooler hid the crash from it.
CREATE UNLOGGED TABLE @schema@.generation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id  uuid    NOT NULL DEFAULT gen_random_uuid()
);

-- A tenant whose backlog would hold up the others of a shard is read apart from them: a slice, with
-- a number behind those of the shards and a cursor of its own. Its shard is read without that
-- tenant meanwhile.
CREATE TABLE @schema@.slices (
  feed   text     NOT NULL,
  shard  smallint NOT NULL,
  base   smallint NOT NULL,
  tenant text     NOT NULL,
  PRIMARY KEY (feed, shard),
  UNIQUE (feed, base, tenant)
);

-- A snapshot sees all messages up to here, if this is its floor, and these are where the
-- transactions begin that it lists.
CREATE FUNCTION @schema@.low(lo bigint, starts bigint[]) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (SELECT least(lo, min(s)) FROM unnest(starts) s);

-- Feed and shard are not those of the checkpoint, though they are the same: who asks for one feed
-- looks at no other's.
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

-- Dedup keys that have been enqueued, for as long as the window says.
CREATE TABLE @schema@.dedup_keys (
  key text        PRIMARY KEY,
  at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX dedup_keys_at ON @schema@.dedup_keys (at);

CREATE FUNCTION @schema@.dedup_window() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN make_interval(secs => @dedup@);

-- How far sweeps have come: of a shard's ledger, no row below n is left to delete, and of the dedup
-- keys (feed '') none below at. Vacuum cannot remove deleted rows while an old snapshot is open: a
-- sweep that began at the first row would walk over all of them.
CREATE TABLE @schema@.swept (
  feed  text     NOT NULL,
  shard smallint NOT NULL,
  n     bigint,
  at    timestamptz,
  PRIMARY KEY (feed, shard)
) WITH (fillfactor = 50);

-- What stands for a name in an index, whose rows could not take a long one. It depends on nothing
-- but the name: a database never changes its encoding.
CREATE FUNCTION @schema@.name_digest(name text) RETURNS bytea
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT sha256(convert_to(name, 'UTF8')) $$;

-- What does not fit a log: messages that wait for their time, that have failed, or that stand
-- behind one that has. Healthy traffic never comes here. Each row is a copy: the log may be emptied
-- under it.
CREATE TABLE @schema@.deferred (
  feed           text        NOT NULL,
  seq            bigint      NOT NULL,  -- that of the log: the order within a key
  shard          smallint    NOT NULL,
  status         text        NOT NULL CHECK (status IN ('scheduled', 'retry', 'held', 'waiting', 'dead', 'parked')),
  blocking       boolean     NOT NULL,  -- later messages of the key wait for this one
  attempts       integer     NOT NULL DEFAULT 0,
  available_at   timestamptz NOT NULL,  -- infinity: not by itself
  deferred_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  tried_at       timestamptz,
  last_error     text,
  job            bigint,                -- the replay that brought it here
  order_key      text,
  priority       integer     NOT NULL,
  id             uuid        NOT NULL,
  type           text        NOT NULL,
  aggregate_type text,
  aggregate_id   text,
  key            text,
  topic          text,
  routing_key    text,
  tenant_id      text,
  content_type   text,
  schema_version integer     NOT NULL,
  schema_id      text,
  dedup_key      text,
  correlation_id text,
  causation_id   text,
  created_at     timestamptz NOT NULL,
  occurred_at    timestamptz NOT NULL,
  deliver_after  timestamptz,
  headers        jsonb,
  payload        bytea       NOT NULL,
  name           text        CHECK ((status = 'held') = (name IS NOT NULL)),  -- that it waits for
  name_digest    bytea       GENERATED ALWAYS AS (@schema@.name_digest(name)) STORED,
  bare           boolean     NOT NULL DEFAULT false,  -- the table refused its content, which the log keeps
  PRIMARY KEY (feed, seq)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX deferred_due ON @schema@.deferred (feed, shard, priority DESC, available_at, seq) WHERE available_at < 'infinity';
CREATE INDEX deferred_next ON @schema@.deferred (feed, shard, available_at) WHERE available_at < 'infinity';
CREATE INDEX deferred_held ON @schema@.deferred (feed, shard, name_digest, seq) WHERE name_digest IS NOT NULL;

-- Texts are indexed by their digest, because an index refuses long ones: messages of other senders
-- may have any key. Whoever looks for a text asks for both.
CREATE INDEX deferred_blocking ON @schema@.deferred (feed, shard, hashtextextended(order_key, 0), seq) WHERE blocking;
CREATE INDEX deferred_bare ON @schema@.deferred (feed, seq) WHERE bare;
CREATE INDEX deferred_id ON @schema@.deferred (id);
CREATE INDEX deferred_status ON @schema@.deferred (feed, status, seq);

-- For operators: any filter over a million dead letters. What is tried again does not pay for it.
CREATE INDEX deferred_type ON @schema@.deferred (hashtextextended(type, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_key ON @schema@.deferred (hashtextextended(order_key, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_topic ON @schema@.deferred (hashtextextended(topic, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_tenant ON @schema@.deferred (hashtextextended(tenant_id, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_created ON @schema@.deferred (created_at, feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_error ON @schema@.deferred USING gin (to_tsvector('simple', last_error))
  WHERE status IN ('dead', 'parked') AND last_error IS NOT NULL;

-- Messages of the log that an operator has decided about before a feed has passed them. Its relays
-- hear of them with every balance, and neither send nor defer them.
CREATE TABLE @schema@.excluded (
  feed  text     NOT NULL,
  seq   bigint   NOT NULL,
  shard smallint NOT NULL,
  id    uuid     NOT NULL,
  PRIMARY KEY (feed, seq)
);

-- A message that has been begun and not ended, again and again, may be what kills relays. Only
-- those that follow a crash are noted, one a member, so that a death is blamed on one message
-- alone.
CREATE TABLE @schema@.suspects (
  feed    text        NOT NULL,
  seq     bigint      NOT NULL,
  member  uuid        NOT NULL,
  started integer     NOT NULL DEFAULT 1,
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (feed, seq)
);

-- What is wrong with the destinations of feeds, and with names of them, as relays report it.
CREATE TABLE @schema@.problems (
  feed        text        NOT NULL,
  name        text        NOT NULL,  -- empty: the destination as a whole
  name_digest bytea       NOT NULL,  -- not generated: such a column cannot be in a replica identity
  since       timestamptz NOT NULL DEFAULT clock_timestamp(),
  last        timestamptz NOT NULL DEFAULT clock_timestamp(),
  over        timestamptz,           -- when the name accepted a message again
  failures    bigint      NOT NULL,
  cause       text        NOT NULL,
  PRIMARY KEY (feed, name_digest)
);

-- Replays, and what has become of each message.
CREATE TABLE @schema@.jobs (
  id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created   timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished  timestamptz,
  state     text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
  dead      boolean     NOT NULL,  -- of dead letters; otherwise of the log
  filter    jsonb       NOT NULL,
  rate      integer     NOT NULL DEFAULT 0,
  who       text        NOT NULL,
  why       text        NOT NULL DEFAULT '',
  total     bigint      NOT NULL,
  sent      bigint      NOT NULL DEFAULT 0,  -- handed to the relays
  seen      bigint      NOT NULL DEFAULT 0,  -- found; what is set aside already is not handed over
  missing   bigint      NOT NULL DEFAULT 0,  -- not in the log any more when their turn came
  until_seq bigint      NOT NULL,            -- nothing behind it belongs to the job
  at_feed   text,                            -- how far it has come
  at_seq    bigint
);

CREATE TABLE @schema@.job_results (
  job   bigint      NOT NULL REFERENCES @schema@.jobs ON DELETE CASCADE,
  seq   bigint      NOT NULL,
  id    uuid        NOT NULL,
  error text,                                -- null: delivered
  at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (job, seq)
);

-- Every message that is known, for each feed, in the words that people use for outboxes.
CREATE VIEW @schema@.message_status AS
  SELECT f.feed, m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic, m.tenant_id, m.dedup_key,
         f.base AS shard, m.seq, m.created_at, m.occurred_at, w.status, w.state, coalesce(d.attempts, 0) AS attempts,
         nullif(d.available_at, 'infinity') AS available_at, d.last_error, coalesce(d.status, w.status) AS detail
  FROM @schema@.messages m
  JOIN @schema@.cursors f ON f.base = @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, f.shards) AND @schema@.covers(f.tenant, f.others, m.tenant_id)
  LEFT JOIN @schema@.deferred d ON d.feed = f.feed AND d.seq = m.seq
  CROSS JOIN LATERAL (
    SELECT CASE WHEN d.status = 'dead' THEN 'failed' WHEN d.status IS NOT NULL THEN 'pending'
                WHEN @schema@.settled(m.xid, m.seq, f.s1, f.s2, f.last) THEN 'published' ELSE 'pending' END,
           CASE WHEN d.status = 'dead' THEN 'DEAD' WHEN d.attempts > 0 THEN 'FAILED' WHEN d.status IS NOT NULL THEN 'NEW'
                WHEN @schema@.settled(m.xid, m.seq, f.s1, f.s2, f.last) THEN 'SENT' ELSE 'NEW' END) w(status, state)
  UNION ALL
  SELECT d.feed, d.id, d.type, d.aggregate_type, d.aggregate_id, d.key, d.topic, d.tenant_id, d.dedup_key, d.shard, d.seq,
         d.created_at, d.occurred_at, CASE WHEN d.status = 'dead' THEN 'failed' ELSE 'pending' END,
         CASE WHEN d.status = 'dead' THEN 'DEAD' WHEN d.attempts > 0 THEN 'FAILED' ELSE 'NEW' END, d.attempts,
         nullif(d.available_at, 'infinity'), d.last_error, d.status
  FROM @schema@.deferred d
  WHERE NOT EXISTS (SELECT FROM @schema@.messages m WHERE m.seq = d.seq);

-- The record of what operators do. Nobody can change it.
CREATE TABLE @schema@.audit (
  n      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  who    text        NOT NULL,
  login  text        NOT NULL DEFAULT session_user,
  action text        NOT NULL,
  why    text        NOT NULL DEFAULT '',
  feed   text,
  count  bigint      NOT NULL DEFAULT 0,
  target jsonb,
  before jsonb,
  after  jsonb
);
CREATE INDEX audit_feed ON @schema@.audit (feed, n);

CREATE FUNCTION @schema@.keep_audit() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION 'the record of what operators did is never changed' USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER keep_audit BEFORE UPDATE OR DELETE OR TRUNCATE ON @schema@.audit
  FOR EACH STATEMENT EXECUTE FUNCTION @schema@.keep_audit();

-- When which canary was sent: a message of each shard that proves that others would arrive.
CREATE TABLE @schema@.canaries (
  key text        NOT NULL,
  at  timestamptz NOT NULL,
  seq bigint      PRIMARY KEY,
  xid xid8        NOT NULL
);
CREATE INDEX canaries_at ON @schema@.canaries (at);

-- What consumers have received. A row says that the message is taken care of: its effect has
-- committed together with the row, or it is set aside.

-- For how long one slot of the inbox's ring is filled. Of the ten slots one is empty or about to
-- be, one is for clocks that are ahead, and one is being filled.
CREATE FUNCTION @schema@.inbox_seconds() RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN @inbox_period@;

-- A message is late if its period, which its ID tells, is one of which something was forgotten.
-- What was made before first_period was never in the ring: a consumer that is new reads the history
-- of a topic, and forgets that apart from what came since.
CREATE TABLE @schema@.consumers (
  n                 integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name              text        NOT NULL UNIQUE,
  created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_period      bigint      NOT NULL DEFAULT floor(date_part('epoch', clock_timestamp()) / @schema@.inbox_seconds()) - 7,
  forgotten         bigint      NOT NULL DEFAULT -1,  -- the last period from first_period on of which something was forgotten
  history_forgotten bigint      NOT NULL DEFAULT -1   -- the last one before first_period
);

-- When a process last said that it works for a consumer. Apart from consumers, whose rows others
-- lock and read for each message.
CREATE TABLE @schema@.consumer_heard (
  consumer integer     PRIMARY KEY,
  at       timestamptz NOT NULL,
  process  text        NOT NULL
) WITH (fillfactor = 50);

-- A ring, as the log is one, but its slot follows from the time in a message's ID: wherever and
-- whenever a message comes again, it meets its first row, and whole slots can be emptied when they
-- are out of the window. IDs grow with time, so the index is written at its end, however large it
-- is.
CREATE TABLE @schema@.inbox (
  consumer integer     NOT NULL,
  slot     smallint    NOT NULL,
  id       uuid        NOT NULL,
  at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, id, slot)
) PARTITION BY LIST (slot);

DO $$
BEGIN
  FOR slot IN 0 .. 9 LOOP
    EXECUTE format('CREATE TABLE @schema@.%I PARTITION OF @schema@.inbox FOR VALUES IN (%s)
      WITH (autovacuum_vacuum_insert_threshold = -1)', 'inbox_' || slot, slot);
  END LOOP;
END
$$;

-- IDs without a time, and those whose time is far from now.
CREATE TABLE @schema@.inbox_strays (
  consumer integer     NOT NULL,
  id       uuid        NOT NULL,
  at       timestamptz NOT NULL DEFAULT now(),
  ahead    boolean     NOT NULL DEFAULT false,  -- it may come again when its time is there
  PRIMARY KEY (consumer, id)
);
CREATE INDEX inbox_strays_at ON @schema@.inbox_strays (at);
CREATE INDEX inbox_strays_ahead ON @schema@.inbox_strays (consumer) WHERE ahead;

-- Consumers for which a plain insert into the ring does not tell all: a key may be blocked, or an
-- ID may be a stray. A row is there before it is needed, and may stay for a while.
CREATE TABLE @schema@.inbox_trouble (
  consumer integer PRIMARY KEY
);

CREATE VIEW @schema@.inbox_messages AS
  SELECT c.name AS consumer, i.id AS message_id, i.at FROM @schema@.inbox i JOIN @schema@.consumers c ON c.n = i.consumer
  UNION ALL
  SELECT c.name, i.id, i.at FROM @schema@.inbox_strays i JOIN @schema@.consumers c ON c.n = i.consumer;

-- Answers to HTTP requests, by the key that the client sent. One unique index over the whole of it
-- decides who may do the work, so it is no ring of partitions: a key would be unique in its slot
-- only.
CREATE TABLE @schema@.idempotency_keys (
  tenant      text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,  -- empty: an endpoint without users
  route       text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL,
  fingerprint bytea            NOT NULL,
  token       text             NOT NULL,  -- of the claim
  leased      timestamptz      NOT NULL,  -- until then the claim counts
  expires     timestamptz      NOT NULL,  -- set once, so that an answer is added without touching an index
  answer      bytea,                      -- null: not done
  PRIMARY KEY (tenant, principal, route, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX idempotency_keys_expires ON @schema@.idempotency_keys (expires);

-- Answers are mostly small, or compressed already by who sends them.
ALTER TABLE @schema@.idempotency_keys ALTER COLUMN answer SET STORAGE EXTERNAL;

-- Sagas: one row each, and one for each of their steps and signals.
--
-- Whoever runs a step holds the lock of its row from the beginning, and takes that of the saga's
-- row when there is something to write. Whoever holds a saga's row never waits for that of a step
-- (SKIP LOCKED), so nobody waits in a circle.

CREATE TABLE @schema@.sagas (
  name     text        NOT NULL,
  id       text        NOT NULL,
  status   text        NOT NULL CHECK (status IN ('running', 'waiting', 'compensating', 'stuck', 'completed', 'compensated')),
  version  bigint      NOT NULL,
  cause    text        NOT NULL DEFAULT '',
  data     json        NOT NULL,
  started  timestamptz NOT NULL,
  updated  timestamptz NOT NULL,
  deadline timestamptz,
  finished timestamptz,
  PRIMARY KEY (name, id)
);
CREATE INDEX sagas_started ON @schema@.sagas (started DESC, name, id);
CREATE INDEX sagas_open ON @schema@.sagas (status, started DESC) WHERE finished IS NULL;
CREATE INDEX sagas_finished ON @schema@.sagas (finished) WHERE finished IS NOT NULL;

CREATE TABLE @schema@.saga_steps (
  saga      text     NOT NULL,
  id        text     NOT NULL,
  step      text     NOT NULL,
  place     integer  NOT NULL,
  stage     integer  NOT NULL,
  state     text     NOT NULL CHECK (state IN ('pending', 'ready', 'waiting', 'done', 'failed', 'cancelled', 'skipped', 'undoing',
                                               'stuck', 'undone')),
  attempts  integer  NOT NULL DEFAULT 0,
  error     text     NOT NULL DEFAULT '',
  failing   timestamptz,
  begun     timestamptz,
  completed integer  NOT NULL DEFAULT 0,
  skip      boolean  NOT NULL DEFAULT false,
  due       timestamptz,
  until     timestamptz,
  reached   timestamptz,
  ended     timestamptz,
  undone    timestamptz,
  PRIMARY KEY (saga, id, step),
  FOREIGN KEY (saga, id) REFERENCES @schema@.sagas ON DELETE CASCADE
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX saga_steps_due ON @schema@.saga_steps (saga, due) WHERE due IS NOT NULL;

CREATE TABLE @schema@.saga_signals (
  saga    text        NOT NULL,
  id      text        NOT NULL,
  name    text        NOT NULL,
  payload json        NOT NULL,
  at      timestamptz NOT NULL,
  late    boolean     NOT NULL,
  repeats integer     NOT NULL,
  PRIMARY KEY (saga, id, name),
  FOREIGN KEY (saga, id) REFERENCES @schema@.sagas ON DELETE CASCADE
);

-- Reconcilers: jobs that look for what is missing. A row for each says when it is due, who runs it,
-- and what came of it.

CREATE TABLE @schema@.reconcilers (
  name          text        PRIMARY KEY,
  schedule      text        NOT NULL,
  next_at       timestamptz NOT NULL,
  token         bigint      NOT NULL DEFAULT 0, -- counts the claims
  holder        text,                           -- of the newest claim; null when it has ended
  lease         interval    NOT NULL DEFAULT '0',
  until         timestamptz NOT NULL DEFAULT '-infinity',
  runs          bigint      NOT NULL DEFAULT 0,
  failed        bigint      NOT NULL DEFAULT 0,
  found         bigint      NOT NULL DEFAULT 0,
  fixed         bigint      NOT NULL DEFAULT 0,
  last_started  timestamptz,
  last_finished timestamptz,
  last_holder   text,
  last_found    bigint      NOT NULL DEFAULT 0,
  last_fixed    bigint      NOT NULL DEFAULT 0,
  last_error    text
);

-- How often a fact was told again although it is remembered.
CREATE TABLE @schema@.reconciler_again (
  job text        NOT NULL,
  key text        NOT NULL,
  n   integer     NOT NULL,
  at  timestamptz NOT NULL,
  PRIMARY KEY (job, key)
);

-- Since when a member is known.
CREATE INDEX members_member ON @schema@.members (feed, member, at);

-- What was done to a certain message. Of many at once the record has no IDs.
CREATE INDEX audit_target ON @schema@.audit USING gin (target jsonb_path_ops);
CREATE INDEX audit_message ON @schema@.audit ((before ->> 'id'));

-- How many canaries there were: they draw numbers of the log, and are no messages of anybody.
CREATE SEQUENCE @schema@.canary_count AS bigint CACHE 1;

CREATE FUNCTION @schema@.count_canary() RETURNS trigger
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM nextval('@schema@.canary_count');
  RETURN NULL;
END
$$;

CREATE TRIGGER count_canary AFTER INSERT ON @schema@.canaries FOR EACH ROW EXECUTE FUNCTION @schema@.count_canary();

-- Idempotency keys without their answers, for those who may not see these.
CREATE VIEW @schema@.idempotency_kept AS
  SELECT i.tenant, i.principal, i.route, i.key, i.answer IS NOT NULL AS done, coalesce(octet_length(i.answer), 0) AS bytes, i.leased, i.expires
  FROM @schema@.idempotency_keys i;
