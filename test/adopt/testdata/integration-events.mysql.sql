CREATE TABLE integration_event_outbox (
  id              bigint       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  type            varchar(255) NOT NULL,
  aggregate_type  varchar(255) NOT NULL,
  aggregate_id    varchar(255) NOT NULL,
  schema_version  int          NOT NULL DEFAULT 1,
  payload         json         NOT NULL,
  metadata        json         NOT NULL DEFAULT ('{}'),
  dedup_key       varchar(255) UNIQUE,
  priority        int          NOT NULL DEFAULT 0,
  deliver_after   datetime(6)  NULL,
  occurred_at     datetime(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  status          varchar(20)  NOT NULL DEFAULT 'pending',
  attempts        int          NOT NULL DEFAULT 0,
  next_attempt_at datetime(6)  NULL,
  last_error      text,
  published_at    datetime(6)  NULL,
  KEY integration_event_outbox_due (status, next_attempt_at, priority, id)
);
