// Package relay publishes committed messages from a store to a broker.
//
// [New] validates the configuration; [Relay.Run] works until its context ends. A relay runs inside the application or in
// its own process, alone or beside others. Relays of one feed share its shards through the store and do not know each
// other.
//
// # How it works
//
// A relay runs one lane per shard that it owns: a loop around a state machine (internal/shard) that decides what to send,
// retry, defer and settle. One reader fetches messages for all lanes in one call and reads ahead within bounds in messages
// and bytes. A lane publishes its messages in order, one call at a time. Retries go in separate calls, so that they do not
// delay new messages. One settler records what the destination confirmed and renews the leases. One keeper requests the
// relay's fair share of shards and releases the surplus. Publishing does not wait for their calls unless a lease is about
// to expire.
//
// What happens to a message that fails depends on the class and scope of the error ([postrider.Class], [postrider.Scope])
// and on the outcome of other messages:
//
//   - It fails while others to the same name succeed: the relay defers it with its key, counts the attempt, and makes it a
//     dead letter after the last one.
//   - Its name accepts nothing: the relay holds the name, defers its messages without counting attempts, and probes it
//     with a growing backoff.
//   - Nothing succeeds at all: all messages wait in place. Nothing is written or counted.
//
// An error of the publisher with a method RetryAfter() time.Duration sets a minimum for the backoff, up to five minutes.
//
// # The files
//
// Read them in this order; no file refers to an earlier one:
//
//   - relay.go: a relay and its life
//   - serve.go: what works at the same time
//   - keeper.go: its fair share of the shards
//   - slice.go: tenants that are read apart
//   - release.go: giving shards up
//   - reader.go: fetching messages
//   - settler.go: recording progress
//   - due.go: fetching deferred messages
//   - report.go: telling the store what is wrong
//   - epoch.go: the lanes, for as long as the store vouches for what it hands out
//   - lane.go: one shard; the decisions are made in internal/shard
//   - session.go: what all of them share
//   - problems.go: what is wrong with the destination
//   - stats.go: what a relay has done
//   - environment.go: how the variables of other outboxes set it up
//   - config.go, memory.go: how it is set up
//   - seldom.go, backoff.go: lines in the log, and pauses
//
// # What it promises
//
//   - Only messages that the destination has confirmed are settled, and only as an unbroken prefix of what was read.
//   - A message is not sent before the earlier messages of its key are confirmed, or are in the same call of a
//     publisher that keeps order.
//   - Nothing is sent under a lease that may have run out: a relay that was paused first learns whether the shard is
//     still its own.
//   - The confirmed prefix always moves: what fails before messages that are confirmed leaves for the deferred ones. So
//     memory stays bounded, and no key or name but its own waits.
//   - A clean stop finishes what is in flight, settles it and releases the shards, so that the next relay goes on at
//     once and repeats nothing.
//   - A relay starts while its database or its broker is down, says so, and recovers by itself.
package relay
