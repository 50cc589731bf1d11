// Package mysql is the store of applications on MySQL or MariaDB: an outbox, inboxes, idempotency keys, sagas and transactions, in
// tables of Postrider's own. Its outbox is that of package table, which a relay reads row by row.
package mysql
