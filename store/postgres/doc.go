// Package postgres stores messages in PostgreSQL 14 or later, as an insert-only log. Relays read
// the log by snapshot difference: a batch holds, in sequence order, the messages that one snapshot
// sees and an earlier one did not.
//
// [Open] (for pgx) and [OpenSQL] (for database/sql) return a handle, which gives access to
// everything else: the outbox for producers, the feeds that relays read, the inbox for consumers,
// sagas, idempotency keys, and the admin API. [DB.Migrator] creates the schema; [NewScript] prints
// it for another migration tool.
//
// The package never updates or deletes a message in the log, never locks one, and never keeps a
// transaction open while a relay talks to a broker. It does not depend on session state, so it
// works through a pooler in transaction mode.
package postgres
