CREATE TABLE outbox_events (
  id            char(36)     NOT NULL DEFAULT (uuid()) PRIMARY KEY,
  aggregate_id  varchar(255) NOT NULL,
  event_type    varchar(255) NOT NULL,
  payload       json         NOT NULL,
  status        varchar(20)  NOT NULL DEFAULT 'PENDING',
  retry_count   int          NOT NULL DEFAULT 0,
  error_message text,
  created_at    datetime(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  published_at  datetime(6)  NULL,
  KEY outbox_events_status (status, created_at)
);
