// Package postrider implements the transactional outbox and inbox patterns.
//
// The application writes a message in its own database transaction. A relay publishes it to a broker after the commit, in
// order per key and without loss, and each consumer applies its effect once.
//
// # Message flow
//
// The application creates a [Message] with [Event] or [UniqueEvent] and passes it, with its own transaction, to an
// [Outbox]. The message waits in a store (folder store). A relay (package relay) opens a feed of that store (package feeds),
// reads committed messages shard by shard, passes them to a [Publisher] (folder broker) and settles what the broker
// confirmed.
//
// This package defines what applications use: the message, the interfaces that they hold, and the error classes. It
// depends on the standard library only.
package postrider
