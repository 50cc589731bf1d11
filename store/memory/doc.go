// Package memory is a store in the memory of the process. It is the reference implementation for
// other stores, and serves tests and programs that consist of a single process. Its contents are
// lost when the process ends, including messages that were not delivered.
//
// There are two ways to write to it. A [DB] is itself a [postrider.Outbox] for its own
// transactions, [Tx], whose messages become visible together at Commit. [Outbox] replaces the
// outbox of a database in an application with another transaction type.
//
// A DB is also the admin API: it implements [admin.DeadLetters], [admin.Feeds] and [admin.Records].
package memory
