// Package relay carries committed messages from a store to a broker.
//
// A [Relay] is a value: [New] checks its configuration, [Relay.Run] works until its context ends. It runs inside the
// application or in a process of its own, alone or as one of many; relays of one feed share its shards through the
// store and need not know each other.
//
// # How it works
//
// For every shard that the store has given it, a relay has a lane. One reader fetches messages for all lanes in one
// call and runs ahead of them within bounds. A lane publishes its messages in order, one call at a time. One settler
// records what has been confirmed and renews the leases; one keeper asks for the relay's fair share and gives up what
// exceeds it. Publishing waits for none of their calls, unless a lease has nearly run out.
//
// # What it promises
//
//   - Only messages that the destination has confirmed are settled, and only as an unbroken prefix of what was read.
//   - A message is not sent before the earlier messages of its key are confirmed, or are in the same call of a
//     publisher that keeps order.
//   - Nothing is sent under a lease that may have run out: a relay that was paused first learns whether the shard is
//     still its own.
//   - A clean stop finishes what is in flight, settles it and releases the shards, so that the next relay goes on at
//     once and repeats nothing.
//   - A relay starts while its database or its broker is down, says so, and recovers by itself.
package relay
