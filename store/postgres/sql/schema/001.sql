-- The tables, their views, and the functions that tables and views need. What is in this file
-- changes only with a new version. All other functions are code: every "migrate up" replaces them.

-- The log: insert-only, read by snapshot difference, emptied by TRUNCATE.

CREATE SEQUENCE @schema@.message_seq AS bigint CACHE 1;

-- shard_of returns the shard of a key. Each feed has its own number of shards.
CREATE FUNCTION @schema@.shard_of(key text, shards integer) RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ((hashtextextended(key COLLATE "C", 0) & 9223372036854775807) % shards)::smallint;

-- order_key returns the ordering key of a message, or null if it has none. An empty text counts as
-- none.
CREATE FUNCTION @schema@.order_key(key text, aggregate_type text, aggregate_id text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN key <> '' THEN key
              WHEN aggregate_type <> '' OR aggregate_id <> '' THEN coalesce(aggregate_type, '') || '/' || coalesce(aggregate_id, '') END;

-- The shard of a message is not stored but computed by readers, so that producers do not pay for
-- it.
CREATE FUNCTION @schema@.shard_of(key text, aggregate_type text, aggregate_id text, id uuid, shards integer) RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN @schema@.shard_of(coalesce(@schema@.order_key(key, aggregate_type, aggregate_id), id::text), shards);

-- set_ring sets the number of slots in the ring of the log and how many seconds producers write to
-- each, while everything runs. The numbers are in functions because producers need the slot of
-- every message. A slot that is no longer part of the ring is emptied, but its partition stays.
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
  -- Every slot has a permanent partition, so no producer can fail for lack of one. Creating it as a
  -- partition would take an exclusive lock on the log; attaching it does not.
  FOR slot IN 0 .. CASE WHEN to_regclass('@schema@.messages') IS NULL THEN 0 ELSE slots END - 1 LOOP
    CONTINUE WHEN to_regclass(format('@schema@.%I', 'messages_' || slot)) IS NOT NULL;
    -- No vacuum is needed before the slot is truncated. While an old transaction is open, vacuum
    -- would read every slot again and again without effect.
    EXECUTE format('CREATE TABLE @schema@.%I (LIKE @schema@.messages INCLUDING DEFAULTS INCLUDING INDEXES)
      WITH (autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_vacuum_insert_threshold = -1)', 'messages_' || slot);
    -- A table without a primary key needs this: under a publication of all tables, the server
    -- otherwise refuses to delete its rows.
    EXECUTE format('ALTER TABLE @schema@.%I REPLICA IDENTITY FULL', 'messages_' || slot);
    EXECUTE format('ALTER TABLE @schema@.messages ATTACH PARTITION @schema@.%I FOR VALUES IN (%s)', 'messages_' || slot, slot);
  END LOOP;
  EXECUTE format('CREATE OR REPLACE FUNCTION @schema@.slot_at(t timestamptz) RETURNS smallint LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (floor(date_part(''epoch'', t) / %s)::bigint %% %s)::smallint', seconds, slots);
END
$$;
REVOKE ALL ON FUNCTION @schema@.set_ring(integer, integer) FROM PUBLIC;

SELECT @schema@.set_ring(@slots@, @period@);

-- new_id returns a UUID of version 7. Its first 48 bits are the time in milliseconds, so IDs of the
-- same time are close together in indexes.
CREATE FUNCTION @schema@.new_id() RETURNS uuid
  LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    PLACING substring(int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid;

-- wrong_headers returns what is wrong with headers, or null. Small headers need not be measured
-- entry by entry.
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

-- xid MUST come before seq: defaults are evaluated in column order, and the cursor relies on a
-- row's transaction ID having been assigned before its sequence number was drawn.
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
  -- An invalid message has no partition, so the limits hold however a message is written. They are
  -- those of the core, except that texts are counted in characters. A trigger would cost the server
  -- four times as much, and a check constraint would print the refused row in its error. Keep the
  -- expression short, and do not use SQL functions: the server plans every term for every
  -- statement, and would parse an SQL function each time.
  CASE WHEN type <> '' AND octet_length(payload) <= @max_payload@ AND (headers IS NULL OR @schema@.wrong_headers(headers) IS NULL) THEN slot END));

-- The only index: producers pay for each one.
CREATE INDEX messages_seq ON @schema@.messages (seq);

SELECT @schema@.set_ring(@slots@, @period@);

CREATE TABLE @schema@.feeds (
  name        text        PRIMARY KEY CHECK (name NOT LIKE 'inbox/%'),  -- consumers defer messages under such names
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  paused      boolean     NOT NULL DEFAULT false,
  destination text,                                                     -- where its relays send to; null: no relay has set it
  shards      smallint    NOT NULL DEFAULT @shards@ CHECK (shards BETWEEN 1 AND 1024),
  id          uuid        NOT NULL DEFAULT gen_random_uuid()             -- tells it from other feeds at the destination
);

-- Changes of a feed's number of shards. First the relays release all cursors. Then they read each
-- cursor up to the same position, s. Then deferred messages move to their new shards; moved is the
-- last sequence number that has.
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

-- The ledger: cursor, lease and fence. The newest row of a shard is its state. If two members both
-- believe that they own a shard, their writes collide on the primary key.
CREATE TABLE @schema@.checkpoints (
  feed     text        NOT NULL,
  shard    smallint    NOT NULL,
  n        bigint      NOT NULL,
  member   uuid,
  released boolean     NOT NULL DEFAULT false,
  at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  until    timestamptz NOT NULL,
  -- Between two windows: everything that s1 sees was passed. A message at or below lo is seen by
  -- s1, or belongs to a transaction that s1 lists as in flight. For each of these transactions,
  -- starts has a number below all its messages.
  s1       pg_snapshot NOT NULL,
  lo       bigint      NOT NULL,
  starts   bigint[]    NOT NULL,
  -- Inside a window: of the messages that s2 sees and s1 does not, those up to last were passed,
  -- and none lies above hi.
  s2       pg_snapshot,
  lo2      bigint      NOT NULL DEFAULT 0,
  starts2  bigint[]    NOT NULL DEFAULT '{}',
  last     bigint      NOT NULL DEFAULT 0,
  hi       bigint      NOT NULL DEFAULT 0,
  crashes  smallint    NOT NULL DEFAULT 0,  -- owners in a row that disappeared without progress
  -- When the oldest attempt began to send something beyond this position. Null means that there was
  -- none, or, unless the row is released, none before it.
  sent     timestamptz,
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
ALTER TABLE @schema@.members REPLICA IDENTITY FULL;  -- a member has several rows, and nothing needs a key

-- Identifies the database to which the transaction IDs of messages and checkpoints belong. row_xid
-- is the xmin of this row. If they differ, the row was not copied with its pages, as by a
-- file-level clone or pg_upgrade, but written again. home is the operator's name for the
-- environment, which relays have in their configuration too: a file-level copy of the server cannot
-- be told from the original in any other way.
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
  UPDATE @schema@.identity SET row_xid = xmin;  -- the UPDATE runs in the same subtransaction, so the new row has the same xmin
END
$$;
REVOKE ALL ON FUNCTION @schema@.move_in() FROM PUBLIC;

SELECT @schema@.move_in();

-- Logical replication may bring checkpoints of another database here, into a schema that keeps its
-- own identity. Relays would then skip messages, or send what the original sends. The trigger fires
-- for what replication writes, and never for relays.
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

-- Unlogged, so that crash recovery and promotion empty it. A reader that finds another row here
-- than before knows that the server may assign sequence numbers and transaction IDs again that the
-- reader has seen, even if a pooler hid the crash from it.
CREATE UNLOGGED TABLE @schema@.generation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id  uuid    NOT NULL DEFAULT gen_random_uuid()
);

-- A tenant whose backlog would delay the others of its shard gets a slice: a cursor of its own,
-- with a number after those of the shards. While the slice exists, the shard is read without that
-- tenant.
CREATE TABLE @schema@.slices (
  feed   text     NOT NULL,
  shard  smallint NOT NULL,
  base   smallint NOT NULL,
  tenant text     NOT NULL,
  PRIMARY KEY (feed, shard),
  UNIQUE (feed, base, tenant)
);

-- low returns the number up to which a snapshot sees all messages. lo is the snapshot's floor, and
-- starts has the numbers below the messages of the transactions that it lists.
CREATE FUNCTION @schema@.low(lo bigint, starts bigint[]) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (SELECT least(lo, min(s)) FROM unnest(starts) s);

-- Select feed and shard from the lateral join, not from the checkpoint, so that a query for one
-- feed reads no other feed.
CREATE VIEW @schema@.cursors AS
  SELECT f.name AS feed, s.shard, c.n, c.member, c.released, c.at, c.until, c.s1, c.lo, c.starts, c.s2, c.lo2, c.starts2, c.last, c.hi, c.crashes, c.sent,
         s.base, s.tenant, s.others, f.shards,
         coalesce(c.sent, CASE WHEN NOT c.released THEN c.at END) AS unsure,  -- since then something may have been sent that is not settled
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

-- covers reports whether a cursor covers the messages of a tenant.
CREATE FUNCTION @schema@.covers(tenant text, others text[], of_tenant text) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN tenant IS NULL THEN coalesce(of_tenant <> ALL (others), true) ELSE coalesce(of_tenant = tenant, false) END;

CREATE FUNCTION @schema@.settled(xid xid8, seq bigint, s1 pg_snapshot, s2 pg_snapshot, last bigint) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_visible_in_snapshot(xid, s1) OR coalesce(seq <= last AND pg_visible_in_snapshot(xid, s2), false);

-- Dedup keys that were enqueued within the dedup window.
CREATE TABLE @schema@.dedup_keys (
  key text        PRIMARY KEY,
  at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX dedup_keys_at ON @schema@.dedup_keys (at);

CREATE FUNCTION @schema@.dedup_window() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN make_interval(secs => @dedup@);

-- The progress of sweeps. The ledger of a shard has no row below n left to delete, and no dedup key
-- (feed '') below at is left. Vacuum cannot remove deleted rows while an old snapshot is open, so a
-- sweep that began at the first row would scan all of them again.
CREATE TABLE @schema@.swept (
  feed  text     NOT NULL,
  shard smallint NOT NULL,
  n     bigint,
  at    timestamptz,
  PRIMARY KEY (feed, shard)
) WITH (fillfactor = 50);

-- name_digest stands for a name in an index, which could not hold a long name. It is immutable
-- although convert_to is not, because a database never changes its encoding.
CREATE FUNCTION @schema@.name_digest(name text) RETURNS bytea
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT sha256(convert_to(name, 'UTF8')) $$;

-- Messages out of the order of the log: they are scheduled, have failed, or wait behind one that
-- has. Most messages never come here. Each row is a copy, because the log may be emptied before it
-- is delivered.
CREATE TABLE @schema@.deferred (
  feed           text        NOT NULL,
  seq            bigint      NOT NULL,  -- of the log; gives the order within a key
  shard          smallint    NOT NULL,
  status         text        NOT NULL CHECK (status IN ('scheduled', 'retry', 'held', 'waiting', 'dead', 'parked')),
  blocking       boolean     NOT NULL,  -- later messages of the key wait for this one
  attempts       integer     NOT NULL DEFAULT 0,
  available_at   timestamptz NOT NULL,  -- infinity: not due until something changes it
  deferred_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  tried_at       timestamptz,
  sent_at        timestamptz,           -- when the oldest attempt began that may have delivered it without an answer
  last_error     text,
  job            bigint,                -- the replay that deferred it
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
  name           text        CHECK ((status = 'held') = (name IS NOT NULL)),  -- the name for which it is held
  name_digest    bytea       GENERATED ALWAYS AS (@schema@.name_digest(name)) STORED,
  bare           boolean     NOT NULL DEFAULT false,  -- this table could not store its content, which is only in the log
  PRIMARY KEY (feed, seq)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX deferred_due ON @schema@.deferred (feed, shard, priority DESC, available_at, seq) WHERE available_at < 'infinity';
CREATE INDEX deferred_next ON @schema@.deferred (feed, shard, available_at) WHERE available_at < 'infinity';
CREATE INDEX deferred_held ON @schema@.deferred (feed, shard, name_digest, seq) WHERE name_digest IS NOT NULL;

-- Texts are indexed by their hash, because an index cannot hold long texts, and other senders may
-- use any key. A query compares both the hash and the text.
CREATE INDEX deferred_blocking ON @schema@.deferred (feed, shard, hashtextextended(order_key, 0), seq) WHERE blocking;
CREATE INDEX deferred_bare ON @schema@.deferred (feed, seq) WHERE bare;
CREATE INDEX deferred_id ON @schema@.deferred (id);
CREATE INDEX deferred_status ON @schema@.deferred (feed, status, seq);

-- For operators, who filter up to a million dead letters in any way. The indexes are partial, so
-- messages that are only retried do not pay for them.
CREATE INDEX deferred_type ON @schema@.deferred (hashtextextended(type, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_key ON @schema@.deferred (hashtextextended(order_key, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_topic ON @schema@.deferred (hashtextextended(topic, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_tenant ON @schema@.deferred (hashtextextended(tenant_id, 0), feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_created ON @schema@.deferred (created_at, feed, seq) WHERE status IN ('dead', 'parked');
CREATE INDEX deferred_error ON @schema@.deferred USING gin (to_tsvector('simple', last_error))
  WHERE status IN ('dead', 'parked') AND last_error IS NOT NULL;

-- Messages of the log on which an operator has acted before a feed has passed them. Relays read
-- this table with every balance, and neither send nor defer these messages.
CREATE TABLE @schema@.excluded (
  feed  text     NOT NULL,
  seq   bigint   NOT NULL,
  shard smallint NOT NULL,
  id    uuid     NOT NULL,
  PRIMARY KEY (feed, seq)
);

-- A message whose attempts repeatedly began and never ended may be what crashes relays. Only
-- attempts after a crash are recorded, and one for each member, so that each crash counts against
-- one message only.
CREATE TABLE @schema@.suspects (
  feed    text        NOT NULL,
  seq     bigint      NOT NULL,
  member  uuid        NOT NULL,
  started integer     NOT NULL DEFAULT 1,
  at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (feed, seq)
);

-- Problems of destinations and of single names at them, as relays report them.
CREATE TABLE @schema@.problems (
  feed        text        NOT NULL,
  name        text        NOT NULL,  -- empty: the destination as a whole
  name_digest bytea       NOT NULL,  -- not generated: a generated column cannot be in a replica identity
  since       timestamptz NOT NULL DEFAULT clock_timestamp(),
  last        timestamptz NOT NULL DEFAULT clock_timestamp(),
  over        timestamptz,           -- when the name accepted a message again
  failures    bigint      NOT NULL,
  cause       text        NOT NULL,
  PRIMARY KEY (feed, name_digest)
);

-- Replays, and the result of each message.
CREATE TABLE @schema@.jobs (
  id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created   timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished  timestamptz,
  state     text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
  dead      boolean     NOT NULL,  -- true: selects dead letters; false: selects messages of the log
  filter    jsonb       NOT NULL,
  rate      integer     NOT NULL DEFAULT 0,
  who       text        NOT NULL,
  why       text        NOT NULL DEFAULT '',
  total     bigint      NOT NULL,
  sent      bigint      NOT NULL DEFAULT 0,  -- handed to the relays
  seen      bigint      NOT NULL DEFAULT 0,  -- found; messages that are deferred already are not sent
  missing   bigint      NOT NULL DEFAULT 0,  -- no longer in the log when their turn came
  until_seq bigint      NOT NULL,            -- the last number that belongs to the job
  at_feed   text,                            -- the position of the job
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

-- The state of every message for each feed, with the column names and states that outbox tables
-- commonly use.
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

-- The audit log of what operators do. No role can change it.
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

-- The canaries that were sent. A canary is a message in each shard that proves that others would
-- arrive.
CREATE TABLE @schema@.canaries (
  key text        NOT NULL,
  at  timestamptz NOT NULL,
  seq bigint      PRIMARY KEY,
  xid xid8        NOT NULL
);
CREATE INDEX canaries_at ON @schema@.canaries (at);

-- What consumers have received. A row says that a message needs no more work: its effect has
-- committed together with the row, or the message is deferred.

-- inbox_seconds returns how long one slot of the inbox's ring is written. Of the ten slots one is
-- empty or about to be emptied, one is for clocks that are ahead, one is being written, and seven
-- are the window.
CREATE FUNCTION @schema@.inbox_seconds() RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN @inbox_period@;

-- A message is late if the consumer has forgotten any message of the same period, which the ID
-- tells. Messages from before first_period were never in the ring: a new consumer that reads the
-- history of a topic records and forgets them separately.
CREATE TABLE @schema@.consumers (
  n                 integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name              text        NOT NULL UNIQUE,
  created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_period      bigint      NOT NULL DEFAULT floor(date_part('epoch', clock_timestamp()) / @schema@.inbox_seconds()) - 7,
  forgotten         bigint      NOT NULL DEFAULT -1,  -- the last period from first_period on in which something was forgotten
  history_forgotten bigint      NOT NULL DEFAULT -1   -- the same before first_period
);

-- Heartbeats of the processes that work for a consumer. They are not in consumers, because every
-- message locks and reads its rows.
CREATE TABLE @schema@.consumer_heard (
  consumer integer     PRIMARY KEY,
  at       timestamptz NOT NULL,
  process  text        NOT NULL
) WITH (fillfactor = 50);

-- A ring like the log, except that the time in a message's ID determines the slot. So a repeated
-- message meets its first row whenever it comes, and a slot outside the window can be emptied as a
-- whole. IDs grow with time, so inserts go to the end of the index, however large it is.
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

-- IDs without a time, and IDs whose time is far from now.
CREATE TABLE @schema@.inbox_strays (
  consumer integer     NOT NULL,
  id       uuid        NOT NULL,
  at       timestamptz NOT NULL DEFAULT now(),
  ahead    boolean     NOT NULL DEFAULT false,  -- its time is in the future, so it may come again when its slot is in the ring
  PRIMARY KEY (consumer, id)
);
CREATE INDEX inbox_strays_at ON @schema@.inbox_strays (at);
CREATE INDEX inbox_strays_ahead ON @schema@.inbox_strays (consumer) WHERE ahead;

-- Consumers for which a plain insert into the ring is not enough, because a key may be blocked or
-- an ID may be a stray. A row is inserted before it is needed, and may stay for a while.
CREATE TABLE @schema@.inbox_trouble (
  consumer integer PRIMARY KEY
);

CREATE VIEW @schema@.inbox_messages AS
  SELECT c.name AS consumer, i.id AS message_id, i.at FROM @schema@.inbox i JOIN @schema@.consumers c ON c.n = i.consumer
  UNION ALL
  SELECT c.name, i.id, i.at FROM @schema@.inbox_strays i JOIN @schema@.consumers c ON c.n = i.consumer;

-- Answers to HTTP requests, by the key that the client sent. A unique index over the whole table
-- decides which request does the work. A ring of partitions would make a key unique only within its
-- slot.
CREATE TABLE @schema@.idempotency_keys (
  tenant      text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,  -- empty: an endpoint without users
  route       text COLLATE "C" NOT NULL,
  key         text COLLATE "C" NOT NULL,
  fingerprint bytea            NOT NULL,
  token       text             NOT NULL,  -- of the claim
  leased      timestamptz      NOT NULL,  -- end of the claim's lease
  expires     timestamptz      NOT NULL,  -- set only by the claim, so that adding the answer updates no index
  answer      bytea,                      -- null: not done
  PRIMARY KEY (tenant, principal, route, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX idempotency_keys_expires ON @schema@.idempotency_keys (expires);

-- Answers are mostly small, or already compressed by the application.
ALTER TABLE @schema@.idempotency_keys ALTER COLUMN answer SET STORAGE EXTERNAL;

-- Sagas: one row each, and one for each of their steps and signals.
--
-- Lock order: a runner locks the row of a step for as long as it runs the step, and locks the
-- saga's row only when there is something to write. A transaction that holds a saga's row never
-- waits for the row of a step (it uses SKIP LOCKED). So there is no deadlock.

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

-- Reconcilers: jobs that find missing effects. Each has a row with its schedule, its owner and its
-- results.

CREATE TABLE @schema@.reconcilers (
  name          text        PRIMARY KEY,
  schedule      text        NOT NULL,
  next_at       timestamptz NOT NULL,
  token         bigint      NOT NULL DEFAULT 0, -- counts the claims
  holder        text,                           -- owner of the newest claim; null after it has ended
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

-- How often a fact was sent again after its dedup key was already recorded.
CREATE TABLE @schema@.reconciler_again (
  job text        NOT NULL,
  key text        NOT NULL,
  n   integer     NOT NULL,
  at  timestamptz NOT NULL,
  PRIMARY KEY (job, key)
);

-- For the time since which a member is known.
CREATE INDEX members_member ON @schema@.members (feed, member, at);

-- For the acts on one message. Acts on many messages do not record their IDs.
CREATE INDEX audit_target ON @schema@.audit USING gin (target jsonb_path_ops);
CREATE INDEX audit_message ON @schema@.audit ((before ->> 'id'));

-- Counts canaries, so that figures can leave them out: they draw sequence numbers of the log but
-- are not messages of the application.
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

-- Idempotency keys without their answers, for users who may not see the answers.
CREATE VIEW @schema@.idempotency_kept AS
  SELECT i.tenant, i.principal, i.route, i.key, i.answer IS NOT NULL AS done, coalesce(octet_length(i.answer), 0) AS bytes, i.leased, i.expires
  FROM @schema@.idempotency_keys i;
