// Package producer writes messages in every supported way, each in one transaction with its row in
// the table of intents: through pgx and PgBouncer, one at a time and in bulk, with early transaction
// IDs, delays, savepoints, rollbacks and two-phase commit. A producer gives up a transaction that the
// database fails; the table shows whether it was committed.
package producer
