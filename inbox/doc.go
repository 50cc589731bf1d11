// Package inbox implements the inbox pattern: each consumer applies the effect of a message once,
// however often the broker delivers it.
//
// An [Inbox] is a named consumer. It runs a handler in a transaction of the consumer's own database
// and records the message's ID in the same transaction: the effect and the record commit together
// or not at all. It acknowledges the message after the commit. If the broker redelivers the message
// after a lost acknowledgement, a crash or a replay, the inbox finds the record and skips the
// message.
//
// If a handler fails, the inbox defers the message in the consumer's database and retries it after
// a backoff. After the last attempt it becomes a dead letter, for "postrider dead --consumer NAME".
// The broker never has to redeliver, so this works the same with every broker, and without one:
// [Inbox.Publisher] puts an inbox behind a relay.
package inbox
