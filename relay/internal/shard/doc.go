// Package shard decides what becomes of the messages of one shard. It is a pure state machine: the caller tells it what has
// happened (a batch was read, a call was answered, time has passed) and it says what to do next (publish these, defer those,
// settle up to here, ask again then). It has no goroutine, clock, lock or I/O of its own, so that a script, a model or a
// simulation can drive it through any history.
//
// The files are to be read in this order; none refers to one before it:
//
//   - machine.go: events in, actions out
//   - due.go: deferred messages that come back
//   - deferral.go: messages that leave the window to be deferred
//   - exclusion.go: messages that an operator has decided about
//   - state.go: what the machine knows, and what it tells
//   - deferred.go: what it knows of deferred messages
//   - failure.go: whose fault a failure is
//   - names.go: the queues, topics and endpoints that messages go to
//   - suspect.go: messages that may have killed relays
//   - memory.go: what was confirmed lately
//   - tenant.go: whether one tenant holds up the others
//   - pick.go: the messages of the next call
//   - overtake.go: those that go first for their priority
//   - window.go: what was read and is not settled yet
//   - order.go: which of it may be sent now
//   - pace.go: how many messages go in a call, and when
//   - lease.go: until when anything may be sent
//   - retry.go: pauses, and the number of attempts
package shard
