// Package reconcile periodically finds business rows that lack their expected effect, and sends the
// message that leads to it once more.
//
// The outbox itself loses nothing. Reconcilers repair losses outside of it: a row that was written
// without its message, a message that its consumer discarded, a broker that was restored from a
// backup, an outbox that was kept in memory. A reconciler uses the natural dedup key of the missing
// message, so that sending it twice does no harm.
//
// [Reconciler.Run] runs jobs, in any number of processes. A [Store] ensures that one process at a
// time runs a job, even if a process crashes during a run.
package reconcile
