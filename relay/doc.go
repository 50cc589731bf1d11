// Package relay carries committed messages from a store to a broker.
//
// A [Relay] is a value: [New] checks its configuration, [Relay.Run] works until its context ends. It runs inside the
// application or in a process of its own, alone or as one of many; relays of one feed share its shards through the
// store and need not know each other.
//
// # How it works
//
// For every shard that the store has given it, a relay has a lane. One reader fetches messages for all lanes in one
// call and runs ahead of them within bounds. A lane publishes its messages, the oldest first, one call at a time. One
// settler records what has been confirmed and renews the leases; one keeper asks for the relay's fair share and gives
// up what exceeds it. Publishing waits for none of their calls, unless a lease has nearly run out.
//
// A message that fails is sent again after a pause and holds back the later ones of its key, but no others, until the
// read-ahead of its shard is full of what was confirmed behind it. An error of the publisher that has a method
// RetryAfter() time.Duration, itself or in what it wraps, makes the pause at least that long, up to five minutes. While
// nothing is confirmed at all, the lane pauses as a whole.
//
// # What it promises
//
//   - Only messages that the destination has confirmed are settled, and only as an unbroken prefix of what was read.
//   - A message is not sent before the earlier messages of its key are confirmed, or are in the same call of a
//     publisher that keeps order.
//   - Nothing is sent under a lease that may have run out: a relay that was paused first learns whether the shard is
//     still its own.
//   - A clean stop finishes what is in flight, settles it and releases the shards, so that the next relay goes on at
//     once and repeats nothing, unless a message that goes on failing stands before confirmed ones.
//   - A relay starts while its database or its broker is down, says so, and recovers by itself.
package relay
