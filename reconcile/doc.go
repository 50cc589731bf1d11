// Package reconcile periodically finds business rows that lack their expected effect, and sends the
// message that leads to it once more.
//
// An outbox loses nothing by itself. What reconcilers are for is everything else: a row that was written past the outbox, a
// message whose consumer has thrown it away, a broker that was restored from yesterday, an outbox that lived in memory. A
// reconciler knows the natural dedup key of what it misses, so looking twice does no harm.
//
// Jobs are run by [Reconciler.Run], in any number of processes. Through a [Store], one of them runs a job at a time, also if a
// process dies in the middle.
package reconcile
