// Package unitofwork enqueues messages automatically: aggregates record events, and a unit of work
// writes them to the outbox at the end of the transaction.
//
//	type Order struct {
//		unitofwork.Events
//		ID string
//	}
//
//	func (o *Order) Place() {
//		o.Record(postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: o.ID}, nil))
//	}
//
// A [Work] is created once, with a transactor and an outbox of the same transaction type. It is
// itself a transactor, so code that opens transactions does not depend on it. Code that loads or
// creates aggregates calls [Track].
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
// The function may also call Enqueue directly: those messages come first.
//
// # Retries and failures
//
// If the transactor runs the function again, the function records its events again, perhaps on the
// same objects. The events of a run that did not commit are discarded. Events that were recorded
// before Do are written in each run and stay with their aggregate until a unit that tracks it has
// committed, so a failed Do can be called again.
package unitofwork
