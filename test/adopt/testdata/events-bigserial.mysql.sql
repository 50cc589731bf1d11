CREATE TABLE outbox_events (
  id             bigint       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  aggregate_type varchar(100) NOT NULL,
  aggregate_id   varchar(100) NOT NULL,
  event_type     varchar(100) NOT NULL,
  routing_key    varchar(200),
  payload        json         NOT NULL,
  status         enum('pending', 'processing', 'published', 'failed') NOT NULL DEFAULT 'pending',
  attempts       int          NOT NULL DEFAULT 0,
  available_at   timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  published_at   timestamp(6) NULL,
  last_error     text,
  created_at     timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  KEY outbox_events_pending (status, available_at, id)
);
