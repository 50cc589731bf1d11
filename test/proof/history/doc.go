// Package history proves delivery guarantees by comparing two histories: what transactions committed, and what arrived.
//
// [Writers] write in every way that makes outboxes lose or reorder messages: they take transaction IDs early, pause before
// and after the insert, roll back, wholly or to a savepoint, insert in bulk and prepare transactions. Each message leaves a
// row in the table facts, in the same transaction: facts is the truth. The messages of a key are numbered without gaps
// under the key's row lock.
//
// A [Log] is where deliveries are appended, by one process or by several. [Check] holds one against the other.
package history
