-- What waits is found by (status, shard, id). Every index is paid by the producers. Texts are compared byte by byte; columns that
-- are compared for being equal are bytes, because MySQL would not see a space at the end. A char would make shard depend on the
-- SQL mode, and MariaDB refuses that. The limits are those of the core, in bytes: their names say what was too long.
CREATE TABLE IF NOT EXISTS {outbox} (
  id             bigint        NOT NULL AUTO_INCREMENT,
  message_id     varchar(36)   NOT NULL DEFAULT (uuid()),
  status         varchar(16)   NOT NULL DEFAULT 'pending',
  type           varchar(1024) NOT NULL,
  aggregate_type varchar(1024),
  aggregate_id   varchar(1024),
  order_key      varchar(2100),
  topic          varchar(1024),
  routing_key    varchar(1024),
  tenant_id      varchar(1024),
  content_type   varchar(1024),
  schema_version int           NOT NULL DEFAULT 1,
  schema_id      varchar(1024),
  dedup_key      varchar(1024),
  correlation_id varchar(1024),
  causation_id   varchar(1024),
  priority       int           NOT NULL DEFAULT 0,
  attempts       int           NOT NULL DEFAULT 0,
  occurred_at    datetime(6),
  created_at     datetime(6)   NOT NULL DEFAULT (utc_timestamp(6)),
  deliver_after  datetime(6),
  available_at   datetime(6),
  published_at   datetime(6),
  last_error     text,
  headers        longtext,
  payload        longblob      NOT NULL,
  shard          smallint      AS (mod(crc32(CASE
    WHEN char_length(order_key) > 0 THEN order_key
    WHEN char_length(aggregate_type) > 0 OR char_length(aggregate_id) > 0 THEN concat(coalesce(aggregate_type, ''), '/', coalesce(aggregate_id, ''))
    ELSE message_id END), 8)) STORED,
  PRIMARY KEY (id),
  KEY {prefix}outbox_waiting (status, shard, id),
  KEY {prefix}outbox_message (message_id),
  CONSTRAINT {prefix}outbox_type CHECK (octet_length(type) BETWEEN 1 AND 1024),
  CONSTRAINT {prefix}outbox_aggregate_type CHECK (octet_length(aggregate_type) <= 1024),
  CONSTRAINT {prefix}outbox_aggregate_id CHECK (octet_length(aggregate_id) <= 1024),
  CONSTRAINT {prefix}outbox_order_key CHECK (octet_length(order_key) <= 1024),
  CONSTRAINT {prefix}outbox_topic CHECK (octet_length(topic) <= 1024),
  CONSTRAINT {prefix}outbox_routing_key CHECK (octet_length(routing_key) <= 1024),
  CONSTRAINT {prefix}outbox_tenant_id CHECK (octet_length(tenant_id) <= 1024),
  CONSTRAINT {prefix}outbox_content_type CHECK (octet_length(content_type) <= 1024),
  CONSTRAINT {prefix}outbox_schema_id CHECK (octet_length(schema_id) <= 1024),
  CONSTRAINT {prefix}outbox_dedup_key CHECK (octet_length(dedup_key) <= 1024),
  CONSTRAINT {prefix}outbox_correlation_id CHECK (octet_length(correlation_id) <= 1024),
  CONSTRAINT {prefix}outbox_causation_id CHECK (octet_length(causation_id) <= 1024),
  CONSTRAINT {prefix}outbox_payload CHECK (octet_length(payload) <= 16777216)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What makes the IDs of rows without a UUID differ from those of other databases. Enrolling a feed locks it.
CREATE TABLE IF NOT EXISTS {identity} (
  one tinyint  NOT NULL,
  id  char(36) NOT NULL,
  PRIMARY KEY (one)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO {identity} (one, id) VALUES (1, left(sha2(concat(uuid(), rand(), now(6)), 256), 32));

-- Of a table with several feeds, each has a filter: no row is meant by two.
CREATE TABLE IF NOT EXISTS {feeds} (
  feed       varbinary(255) NOT NULL,
  id         char(36)       NOT NULL,  -- tells it from other feeds at the destination
  table_name varchar(255)   NOT NULL,
  shards     int            NOT NULL,
  paused     tinyint        NOT NULL DEFAULT 0,
  created_at datetime(6)    NOT NULL,
  settled_at datetime(6),
  destination varchar(1024),
  filter      mediumtext,
  PRIMARY KEY (feed)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {members} (
  feed       varbinary(255) NOT NULL,
  member     char(36)       NOT NULL,
  name       varchar(255)   NOT NULL,
  since      datetime(6)    NOT NULL,
  heard_at   datetime(6)    NOT NULL,
  expires_at datetime(6)    NOT NULL,
  PRIMARY KEY (feed, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The token grows by one whenever a shard changes hands: the holder of an older one has been replaced. sent_at is when the oldest
-- attempt began to send something that is not settled; if it is null, there was none, or, of a shard with a holder, none before changed_at.
CREATE TABLE IF NOT EXISTS {leases} (
  feed       varbinary(255) NOT NULL,
  shard      smallint       NOT NULL,
  token      bigint         NOT NULL DEFAULT 0,
  holder     char(36),
  expires_at datetime(6),
  changed_at datetime(6),
  crashes    int            NOT NULL DEFAULT 0,
  sent_at    datetime(6),
  PRIMARY KEY (feed, shard)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What was deferred, by its row in the table of messages. Healthy traffic never touches it. name is what a message is held for,
-- and null for all others; name_hash is that of the name, which may be longer than an index allows.
CREATE TABLE IF NOT EXISTS {deferred} (
  feed         varbinary(255) NOT NULL,
  row_id       varbinary(255) NOT NULL,
  shard        smallint       NOT NULL,
  seq          bigint         NOT NULL,
  order_key    varbinary(2100),
  status       varchar(16)    NOT NULL,
  blocking     tinyint        NOT NULL DEFAULT 0,
  attempts     int            NOT NULL DEFAULT 0,
  priority     int            NOT NULL DEFAULT 0,
  last_error   text,
  enqueued_at  datetime(6)    NOT NULL,
  deferred_at  datetime(6)    NOT NULL,
  tried_at     datetime(6),
  available_at datetime(6),
  sent_at      datetime(6),
  name         longtext,
  name_hash    varbinary(64),
  PRIMARY KEY (feed, row_id),
  UNIQUE KEY {prefix}deferred_seq (feed, shard, seq),
  KEY {prefix}deferred_due (feed, shard, available_at, seq, priority),
  KEY {prefix}deferred_status (feed, status, shard, seq),
  KEY {prefix}deferred_key (feed, blocking, order_key, seq),
  KEY {prefix}deferred_held (feed, shard, name_hash, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {starts} (
  feed    varbinary(255) NOT NULL,
  shard   smallint       NOT NULL,
  row_id  varbinary(255) NOT NULL,
  member  char(36)       NOT NULL,
  started int            NOT NULL,
  PRIMARY KEY (feed, shard, row_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The claim tells the call that has got a key from one that comes later, whatever the IDs of their messages.
CREATE TABLE IF NOT EXISTS {dedup} (
  dedup_key  varbinary(1024) NOT NULL,
  claim      char(36)        NOT NULL,
  at         datetime(6)     NOT NULL,
  PRIMARY KEY (dedup_key),
  KEY {prefix}dedup_at (at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What is wrong with the destination, and with names of it, as relays report it.
CREATE TABLE IF NOT EXISTS {problems} (
  feed      varbinary(255) NOT NULL,
  name_hash varbinary(64)  NOT NULL,
  name      longtext       NOT NULL,
  since     datetime(6)    NOT NULL,
  last_at   datetime(6)    NOT NULL,
  over_at   datetime(6),
  failures  bigint         NOT NULL,
  cause     text,
  PRIMARY KEY (feed, name_hash)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {audit} (
  n             bigint       NOT NULL AUTO_INCREMENT,
  at            datetime(6)  NOT NULL,
  who           varchar(255) NOT NULL,
  login         varchar(255) NOT NULL,
  action        varchar(64)  NOT NULL,
  why           text,
  feed          varbinary(255),
  count         int          NOT NULL DEFAULT 0,
  target        longtext,
  before_change longtext,
  after_change  longtext,
  PRIMARY KEY (n)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
