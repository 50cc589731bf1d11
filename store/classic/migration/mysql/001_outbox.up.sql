-- What waits is found by (status, shard, id). Every index is paid by the producers. Texts are compared byte by byte; columns that
-- are compared for being equal are bytes, because MySQL would not see a space at the end. A char would make shard depend on the
-- SQL mode, and MariaDB refuses that.
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
  KEY {prefix}outbox_message (message_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {feeds} (
  feed       varbinary(255) NOT NULL,
  table_name varchar(255)   NOT NULL,
  shards     int            NOT NULL,
  paused     tinyint        NOT NULL DEFAULT 0,
  created_at datetime(6)    NOT NULL,
  settled_at datetime(6),
  PRIMARY KEY (feed),
  UNIQUE KEY {prefix}feeds_table (table_name)
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

-- The token grows by one whenever a shard changes hands: whoever holds an older one has been replaced.
CREATE TABLE IF NOT EXISTS {leases} (
  feed       varbinary(255) NOT NULL,
  shard      smallint       NOT NULL,
  token      bigint         NOT NULL DEFAULT 0,
  holder     char(36),
  expires_at datetime(6),
  changed_at datetime(6),
  crashes    int            NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What was set aside, by its row in the table of messages. Healthy traffic never touches it.
CREATE TABLE IF NOT EXISTS {aside} (
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
  PRIMARY KEY (feed, row_id),
  UNIQUE KEY {prefix}aside_seq (feed, shard, seq),
  KEY {prefix}aside_due (feed, shard, available_at, seq, priority),
  KEY {prefix}aside_status (feed, status, shard, seq),
  KEY {prefix}aside_key (feed, blocking, order_key, seq)
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
