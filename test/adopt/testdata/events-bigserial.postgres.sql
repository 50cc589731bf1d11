CREATE TABLE outbox_events (
  id             bigserial    PRIMARY KEY,
  aggregate_type varchar(100) NOT NULL,
  aggregate_id   varchar(100) NOT NULL,
  event_type     varchar(100) NOT NULL,
  routing_key    varchar(200),
  payload        jsonb        NOT NULL,
  status         varchar(20)  NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'published', 'failed')),
  attempts       integer      NOT NULL DEFAULT 0,
  available_at   timestamptz  NOT NULL DEFAULT now(),
  published_at   timestamptz,
  last_error     text,
  created_at     timestamptz  NOT NULL DEFAULT now()
);
CREATE INDEX outbox_events_pending ON outbox_events (status, available_at, id);
