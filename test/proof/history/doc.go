// Package history proves delivery guarantees by comparing two histories: what transactions committed
// and what arrived.
//
// [Writers] write in every way that makes an outbox lose or reorder messages: they take transaction
// IDs early, pause before and after the insert, roll back fully or to a savepoint, insert in bulk and
// prepare transactions. Each message inserts a row into the table facts in the same transaction, so
// facts is the truth. The messages of a key are numbered without gaps under the key's row lock.
//
// A [Log] records deliveries, from one process or several. [Check] compares the two.
package history
