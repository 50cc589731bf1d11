CREATE TABLE `Outbox` (
  `id`            VARCHAR(191) NOT NULL,
  `aggregateType` VARCHAR(191) NOT NULL,
  `aggregateId`   VARCHAR(191) NOT NULL,
  `eventType`     VARCHAR(191) NOT NULL,
  `payload`       JSON         NOT NULL,
  `createdAt`     DATETIME(3)  NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  `processedAt`   DATETIME(3)  NULL,
  `attempts`      INTEGER      NOT NULL DEFAULT 0,
  `lastError`     TEXT         NULL,
  PRIMARY KEY (`id`),
  INDEX `Outbox_processedAt_createdAt_idx` (`processedAt`, `createdAt`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
