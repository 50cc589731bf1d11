// Package inbox makes the effect of a message happen once at each consumer, however often the message comes.
//
// An [Inbox] is a named consumer. It runs a handler in a transaction of the consumer's own database, and records the message's
// ID in the same transaction: the effect and the memory of it commit together, or neither does. Only then is the broker told.
// A message that comes again, because an acknowledgement was lost, because a process died, or because somebody replays, finds
// the record and is skipped.
//
// A message whose handler fails is set aside in the consumer's database and tried again after a pause; when its retries are used
// up it is a dead letter, for "postrider dead --consumer NAME". The broker never has to redeliver, so all this is the same on
// every broker, and without one: [Inbox.Publisher] puts an inbox behind a relay.
package inbox
