// Package postridertest helps to test applications that use Postrider.
//
// [Record] wraps any outbox, in memory or in a database, and tests whether a message was enqueued
// in a transaction:
//
//	outbox := postridertest.Record(realOutbox)
//	placeOrder(ctx, tx, outbox)
//	outbox.In(tx).Enqueued(t, postridertest.Match{Type: "order.placed", AggregateID: "42"})
//
// [New] makes a [World]: a store, a broker, a relay and consumers in memory, which only work when
// the test tells them to. [World.Deliver] delivers everything that was committed to the handlers,
// and returns a [Report] of what was sent, received, handled and refused. In a bubble of
// testing/synctest time is virtual, and retries over hours take no time.
//
// [Inject] injects faults: it wraps publishers, consumers and inboxes to duplicate and reorder
// messages, lose answers and acknowledgements, refuse, delay and crash. The wrappers work with real
// brokers and databases too. The faults follow from a seed, which a failing test logs.
//
// Assertions call Fatal, so use them in the goroutine of the test.
package postridertest
