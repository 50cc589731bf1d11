CREATE TABLE "Outbox" (
  "id"            TEXT         NOT NULL,
  "aggregateType" TEXT         NOT NULL,
  "aggregateId"   TEXT         NOT NULL,
  "eventType"     TEXT         NOT NULL,
  "payload"       JSONB        NOT NULL,
  "createdAt"     TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "processedAt"   TIMESTAMP(3),
  "attempts"      INTEGER      NOT NULL DEFAULT 0,
  "lastError"     TEXT,
  CONSTRAINT "Outbox_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "Outbox_processedAt_createdAt_idx" ON "Outbox" ("processedAt", "createdAt");
