// Package unitofwork is the automatic way to use an outbox: aggregates record what happens to them, and a unit of work enqueues it at
// the end of the transaction.
//
//	type Order struct {
//		unitofwork.Events
//		ID string
//	}
//
//	func (o *Order) Place() { o.Record(postrider.UniqueEvent("order.placed", "order", o.ID, nil)) }
//
// A [Work] is wired once, with a transactor and an outbox of the same transaction type. It is a transactor itself, so code that
// opens transactions does not know about it; code that loads or makes aggregates calls [Track].
//
//	work := unitofwork.New(transactor, outbox)
//	err := work.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
//		order := &Order{ID: "42"}
//		order.Place()
//		if err := unitofwork.Track(ctx, order); err != nil {
//			return err
//		}
//		return insert(ctx, tx, order)
//	})
//
// The manual way, calling Enqueue, can be mixed in freely: its messages come first.
//
// # What happens when a transaction is repeated or fails
//
// A function that is run again records again, perhaps on the same objects. What a run recorded that did not commit does not
// count. What was recorded before the Do does, in each run, and stays with its aggregate until a unit that tracks it has
// committed: a Do that has failed can be called again.
package unitofwork
