// Package relay publishes committed messages from a store to a broker.
//
// [New] validates the configuration. [Relay.Run] publishes until its context ends. A relay runs
// inside the application or in its own process, alone or beside others. Relays of one feed
// coordinate through the store only.
//
// # How it works
//
// A relay runs one worker per shard that it owns: a goroutine around a state machine (internal/shard)
// that decides what to send, retry, defer and settle. One reader fetches messages for all workers in
// one call and reads ahead within bounds in messages and bytes. A worker publishes its messages in
// order, one call at a time. Retries of deferred messages use separate calls, so that they do not
// delay new messages. One settler records what the destination confirmed and renews the leases. One
// keeper requests the relay's fair share of shards and releases the surplus. Publishing does not
// wait for the settler or the keeper unless a lease is about to expire.
//
// What happens to a message that fails depends on the class and scope of the error
// ([postrider.Class], [postrider.Scope]) and on the outcome of other messages:
//
//   - The message fails while others to the same name succeed: the relay defers it with its key,
//     counts the attempt, and makes it a dead letter after the last one.
//   - The name accepts nothing: the relay holds the name, defers its messages without counting
//     attempts, and probes it with a growing backoff.
//   - Nothing succeeds at all: all messages wait in place. The relay writes nothing and counts
//     nothing.
//
// An error of the publisher with a method RetryAfter() time.Duration sets a minimum for the
// backoff, up to five minutes.
//
// # The files
//
// Read them in this order; no file refers to an earlier one:
//
//   - relay.go: the Relay type and Run
//   - serve.go: the goroutines of an epoch
//   - keeper.go: the fair share of shards
//   - slice.go: tenants that are read separately
//   - release.go: releasing shards
//   - reader.go: fetching messages
//   - settler.go: recording progress
//   - due.go: fetching deferred messages
//   - report.go: reporting problems of the destination to the store
//   - epoch.go: the workers, from the start or a reset of the store to the next reset
//   - worker.go: one shard; internal/shard makes the decisions
//   - recall.go: asking the destination what has arrived; internal/doubt makes the decisions
//   - session.go: state that all parts share
//   - problems.go: problems of the destination
//   - stats.go: counters
//   - environment.go: environment variables of other outbox implementations
//   - config.go, memory.go: configuration
//   - loglimit.go, backoff.go: rate-limited logging, and backoff
//
// # Guarantees
//
//   - The relay settles only messages that the destination has confirmed, and only as an unbroken
//     prefix of what it read.
//   - The relay sends a message only after the earlier messages of its key are confirmed, or
//     together with them in one call of a publisher that keeps order.
//   - The relay sends nothing under a lease that may have expired. After a pause of the process, it
//     first verifies that it still owns the shard.
//   - The confirmed prefix always advances: a message that fails in front of confirmed ones is
//     deferred. Memory therefore stays bounded, and a failing message delays only its own key and
//     name.
//   - A clean stop finishes the calls in flight, settles them and releases the shards. The next
//     relay continues at once and repeats nothing.
//   - A relay starts while its database or its broker is down, logs that, and recovers without
//     intervention.
package relay
