// Package postgres keeps messages in PostgreSQL 14 or later, as an insert-only log that relays read by snapshot
// difference: a batch is what one snapshot sees and an earlier one did not, in sequence order.
//
// Producers need an [Outbox] (for pgx) or a [SQLOutbox] (for database/sql) and a transaction of their own. Relays need a
// [Store]. A [Migrator] lays out the schema, or prints it for another migration tool.
//
// No message is ever updated or deleted, no lock is taken on a message, and no transaction is held open while a broker
// is spoken to. Nothing depends on session state, so everything works through a pooler in transaction mode.
package postgres
