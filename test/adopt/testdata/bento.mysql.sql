CREATE TABLE outbox (
  id           char(36)     NOT NULL PRIMARY KEY,
  tenant_id    varchar(255) NOT NULL,
  topic        varchar(255) NOT NULL,
  aggregate_id varchar(255),
  type         varchar(255) NOT NULL,
  payload      json         NOT NULL,
  headers      json         NOT NULL DEFAULT ('{}'),
  status       varchar(16)  NOT NULL DEFAULT 'NEW',
  attempts     int          NOT NULL DEFAULT 0,
  retry_after  datetime(6)  NULL,
  last_error   text,
  created_at   datetime(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  sent_at      datetime(6)  NULL,
  KEY outbox_status (status, retry_after, created_at)
);
