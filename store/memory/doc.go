// Package memory is a store that lives in the process: the reference for every other store, and the one for tests and
// for programs of a single process. What it holds ends with the process; kill -9 loses what was not delivered.
//
// There are two ways to write to it. A [DB] is itself a [postrider.Outbox] for its own transactions, [Tx], whose
// messages appear together at Commit. [Outbox] stands in for the outbox of a database in an application that has
// transactions of another type: it cannot see their commit, so messages appear as soon as they are enqueued.
//
// A DB is also the admin API: it implements [admin.DeadLetters], [admin.Feeds] and [admin.Records].
package memory
