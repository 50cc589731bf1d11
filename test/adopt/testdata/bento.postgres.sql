CREATE TABLE outbox (
  id           uuid        PRIMARY KEY,
  tenant_id    text        NOT NULL,
  topic        text        NOT NULL,
  aggregate_id text,
  type         text        NOT NULL,
  payload      jsonb       NOT NULL,
  headers      jsonb       NOT NULL DEFAULT '{}',
  status       text        NOT NULL DEFAULT 'NEW' CHECK (status IN ('NEW', 'PUBLISHING', 'SENT', 'FAILED', 'DEAD')),
  attempts     integer     NOT NULL DEFAULT 0,
  retry_after  timestamptz,
  last_error   text,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  sent_at      timestamptz
);
CREATE INDEX outbox_status ON outbox (status, retry_after, created_at);
