CREATE TABLE outbox_events (
  id            uuid         PRIMARY KEY DEFAULT gen_random_uuid(),
  aggregate_id  varchar(255) NOT NULL,
  event_type    varchar(255) NOT NULL,
  payload       jsonb        NOT NULL,
  status        varchar(20)  NOT NULL DEFAULT 'PENDING',
  retry_count   integer      NOT NULL DEFAULT 0,
  error_message text,
  created_at    timestamptz  NOT NULL DEFAULT clock_timestamp(),
  published_at  timestamptz
);
CREATE INDEX outbox_events_status ON outbox_events (status, created_at);
