// Package postridertest helps applications to test what they do with Postrider.
//
// [Record] wraps any outbox, of memory or of a database, and answers the question "was this enqueued in the transaction":
//
//	outbox := postridertest.Record(realOutbox)
//	placeOrder(ctx, tx, outbox)
//	outbox.In(tx).Enqueued(t, postridertest.Match{Type: "order.placed", AggregateID: "42"})
//
// [New] makes a [World]: a store, a broker, a relay and consumers in memory, that move only when the test says so.
// [World.Deliver] carries everything that was committed to its handlers, and returns a [Report] of what was sent, received,
// handled and refused. In a bubble of testing/synctest the time is virtual, and retries of hours are over at once.
//
// [Inject] breaks things: its wrappers for publishers, consumers and inboxes repeat messages, change their order, lose answers
// and acknowledgements, refuse, wait and die. They work with real brokers and databases too. What they do follows from a seed,
// which a test that fails tells.
//
// Assertions end the test with Fatal, so they belong into the goroutine of the test.
package postridertest
