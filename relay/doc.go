// Package relay carries committed messages from a store to a broker.
//
// A [Relay] is a value: [New] checks its configuration, [Relay.Run] works until its context ends. It runs inside the
// application or in a process of its own, alone or as one of many; relays of one feed share its shards through the
// store and need not know each other.
//
// # How it works
//
// For every shard that the store has given it, a relay has a lane: a loop around a state machine (internal/shard) that decides
// what is sent, sent again, deferred and settled. One reader fetches messages for all lanes in one call and runs ahead of them
// within bounds in messages and bytes. A lane publishes its messages, the oldest first, one call at a time; what has failed
// before goes in calls of its own, so that it holds up nothing else. One settler records what has been confirmed and renews the
// leases; one keeper asks for the relay's fair share and gives up what exceeds it. Publishing waits for none of their calls,
// unless a lease has nearly run out.
//
// What becomes of a message that fails depends on the error's class and scope (see [postrider.Class], [postrider.Scope]) and on
// what becomes of others meanwhile. One that fails while others of its name pass is deferred with its key, its attempts are
// counted, and it is a dead letter at the end. A name that accepts nothing is held: its messages are deferred uncounted, and
// probed with growing pauses. While nothing passes at all, everything waits where it is: nothing is written or counted. An error
// of the publisher that has a method RetryAfter() time.Duration, itself or in what it wraps, makes the pause at least that long,
// up to five minutes.
//
// # The files
//
// They are to be read in this order; none refers to one before it:
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
//   - tenure.go: the lanes, for as long as the store vouches for what it hands out
//   - lane.go: one shard; the decisions are made in internal/shard
//   - session.go: what all of them share
//   - problems.go: what is wrong with the destination
//   - stats.go: what a relay has done
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
