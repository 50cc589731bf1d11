// Package producer writes messages in every way that there is, each in one transaction with its row of the ledger: through pgx and through
// PgBouncer, one by one and in bulk, with early transaction IDs, pauses, savepoints, rollbacks and two-phase commit. What the database fails
// is given up; what has become of it stands in the ledger.
package producer
