// Package postgres keeps messages in PostgreSQL 14 or later, as an insert-only log that relays read by snapshot
// difference: a batch is what one snapshot sees and an earlier one did not, in sequence order.
//
// [Open] (for pgx) and [OpenSQL] (for database/sql) return the handle that everything else comes from: the outbox of producers, the
// feeds that relays read, the inbox of consumers, sagas, idempotency keys, and what operators do. [DB.Migrator] creates the schema, and
// [NewScript] prints it for another migration tool.
//
// No message is ever updated or deleted, no lock is taken on a message, and no transaction is held open while a broker
// is spoken to. Nothing depends on session state, so everything works through a pooler in transaction mode.
package postgres
