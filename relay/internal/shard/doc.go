// Package shard decides what to do with the messages of one shard. It is a pure state machine: the
// caller passes events (a batch was read, a call was answered, time has passed), and the machine
// returns actions (publish these, defer those, settle up to here, call again at that time). It has
// no goroutines, clock, locks or I/O, so that a script, a model or a simulation can drive it
// through any history.
//
// Read the files in this order; no file refers to an earlier one:
//
//   - machine.go: events in, actions out
//   - due.go: deferred messages that are due again
//   - deferral.go: deferring messages of the window
//   - exclusion.go: messages of the log that an operator has handled
//   - state.go: the state and the types of events and actions
//   - deferred.go: state of deferred messages
//   - failure.go: deciding what a failure means
//   - names.go: the queues, topics and endpoints that messages go to
//   - suspect.go: messages that may have crashed relays
//   - memory.go: recently confirmed messages
//   - tenant.go: detecting a tenant that delays the others
//   - pick.go: choosing the messages of the next call
//   - overtake.go: priorities
//   - window.go: messages that were read and are not settled
//   - order.go: which messages of the window may be sent
//   - pace.go: the size and the time of calls
//   - lease.go: until when messages may be sent
//   - retry.go: backoff and attempts
package shard
