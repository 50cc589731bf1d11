-- What transactions leave behind to find out whether they have committed. Each row belongs to one transaction of one program at a
-- time: the mark is a number that only its COMMIT makes positive.
CREATE TABLE IF NOT EXISTS {commits} (
  program binary(16)  NOT NULL,
  slot    int         NOT NULL,
  mark    bigint      NOT NULL,
  at      datetime(6) NOT NULL,
  PRIMARY KEY (program, slot)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A change of what a consumer has deferred locks the row of the consumer. forgotten_us and history_us are when the youngest message was made
-- that is forgotten, of those made since a window before the consumer, and of earlier ones; in microseconds since 1970.
CREATE TABLE IF NOT EXISTS {consumers} (
  n            int            NOT NULL AUTO_INCREMENT,
  name         varbinary(255) NOT NULL,
  window_us    bigint         NOT NULL,
  created_at   datetime(6)    NOT NULL,
  forgotten_us bigint         NOT NULL DEFAULT 0,
  history_us   bigint         NOT NULL DEFAULT 0,
  PRIMARY KEY (n),
  UNIQUE KEY {prefix}consumers_name (name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- When a process last said that it works for a consumer. Apart from consumers, whose rows are locked by handlers.
CREATE TABLE IF NOT EXISTS {consumer_heard} (
  consumer int            NOT NULL,
  at       datetime(6)    NOT NULL,
  process  varbinary(255) NOT NULL,
  PRIMARY KEY (consumer)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What consumers have received. A row says that the message is taken care of: its effect has committed together with the row, or it is
-- deferred. IDs grow with time, so rows are written at the end.
CREATE TABLE IF NOT EXISTS {inbox} (
  consumer   int         NOT NULL,
  id         binary(16)  NOT NULL,
  keep_until datetime(6) NOT NULL,
  PRIMARY KEY (consumer, id),
  KEY {prefix}inbox_old (keep_until)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- key_hash is that of the ordering key, which may be longer than an index allows; empty: there is none.
CREATE TABLE IF NOT EXISTS {inbox_deferred} (
  seq          bigint        NOT NULL AUTO_INCREMENT,
  consumer     int           NOT NULL,
  message_id   binary(16)    NOT NULL,
  key_hash     varbinary(32) NOT NULL,
  status       varchar(16)   NOT NULL,
  blocking     tinyint       NOT NULL,
  attempts     int           NOT NULL,
  last_error   text          NOT NULL,
  deferred_at  datetime(6)   NOT NULL,
  tried_at     datetime(6),
  available_at datetime(6),
  message      longblob      NOT NULL,
  payload      longblob      NOT NULL,
  PRIMARY KEY (seq),
  UNIQUE KEY {prefix}inbox_deferred_message (consumer, message_id),
  KEY {prefix}inbox_deferred_due (consumer, available_at, seq),
  KEY {prefix}inbox_deferred_key (consumer, blocking, key_hash, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A retry of a message locks its row here, so that operators can decide about the message all the while.
CREATE TABLE IF NOT EXISTS {inbox_turns} (
  seq bigint NOT NULL,
  PRIMARY KEY (seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Answers to HTTP requests, by the key that the client sent. Claims lock rows by n alone: so a caller that adds a key that is there already is
-- told so by the other index, without waiting for them. A row without a token is there for nothing but to be locked.
CREATE TABLE IF NOT EXISTS {idempotency} (
  n           bigint         NOT NULL AUTO_INCREMENT,
  hash        binary(32)     NOT NULL,
  tenant      varbinary(255) NOT NULL,
  principal   varbinary(255) NOT NULL,
  route       varbinary(512) NOT NULL,
  request_key varbinary(255) NOT NULL,
  fingerprint binary(32)     NOT NULL,
  token       varbinary(255) NOT NULL,
  leased      datetime(6)    NOT NULL,
  expires     datetime(6)    NOT NULL,
  answer      longblob,
  PRIMARY KEY (n),
  UNIQUE KEY {prefix}idempotency_hash (hash),
  KEY {prefix}idempotency_expires (expires)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Steps and signals of a saga stand in its row, in state: so a transaction that has locked that sees them as they are, at any isolation level.
CREATE TABLE IF NOT EXISTS {sagas} (
  name     varbinary(255) NOT NULL,
  id       varbinary(255) NOT NULL,
  status   varchar(16)    NOT NULL,
  version  bigint         NOT NULL,
  cause    longblob       NOT NULL,
  data     longblob       NOT NULL,
  state    longblob       NOT NULL,
  started  datetime(6)    NOT NULL,
  updated  datetime(6)    NOT NULL,
  deadline datetime(6),
  finished datetime(6),
  PRIMARY KEY (name, id),
  KEY {prefix}sagas_started (started),
  KEY {prefix}sagas_status (status, started),
  KEY {prefix}sagas_finished (finished)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- When steps are due. A runner has the row of its step locked.
CREATE TABLE IF NOT EXISTS {saga_steps} (
  saga varbinary(255) NOT NULL,
  id   varbinary(255) NOT NULL,
  step varbinary(255) NOT NULL,
  due  datetime(6),
  PRIMARY KEY (saga, id, step),
  KEY {prefix}saga_steps_due (saga, due)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
