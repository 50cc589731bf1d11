// Package postrider carries what a database transaction has promised to the rest of the world.
//
// A message is written in the business transaction, and is published to a broker once that has committed: in order per
// key, never lost, and with an effect that happens once at each consumer.
//
// # The way of a message
//
// The application makes a [Message] with [Event] or [UniqueEvent] and hands it, with its own transaction, to an
// [Outbox]. The message then waits in a [Store] (folder store). A relay (package relay) opens a [Feed] of that store,
// reads committed messages shard by shard, hands them to a [Publisher] (folder broker) and settles what the broker has
// confirmed.
//
// This package holds the message, the ports between those stations and the classes of errors that they tell each other.
// It depends on the standard library alone.
package postrider
