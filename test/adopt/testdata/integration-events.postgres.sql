CREATE TABLE integration_event_outbox (
  id              bigserial   PRIMARY KEY,
  type            text        NOT NULL,
  aggregate_type  text        NOT NULL,
  aggregate_id    text        NOT NULL,
  schema_version  integer     NOT NULL DEFAULT 1,
  payload         jsonb       NOT NULL,
  metadata        jsonb       NOT NULL DEFAULT '{}',
  dedup_key       text        UNIQUE,
  priority        integer     NOT NULL DEFAULT 0,
  deliver_after   timestamptz,
  occurred_at     timestamptz NOT NULL DEFAULT now(),
  status          text        NOT NULL DEFAULT 'pending',
  attempts        integer     NOT NULL DEFAULT 0,
  next_attempt_at timestamptz,
  last_error      text,
  published_at    timestamptz
);
CREATE INDEX integration_event_outbox_due ON integration_event_outbox (status, next_attempt_at, priority DESC, id);
