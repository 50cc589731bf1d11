package postrider

import "context"

// Outbox is the producer's side of a store. Tx is the application's own transaction type, such as pgx.Tx or *sql.Tx. An
// application that depends on this interface can change stores without changing its code.
type Outbox[Tx any] interface {
	// Enqueue writes the messages in the caller's transaction: they exist if and only if tx commits. It makes one
	// round trip for any number of messages and accepts all of them or none. After a database error the caller must
	// roll back, as after any failed statement. Enqueue returns an [*InvalidError] for an unacceptable message before
	// it writes anything.
	//
	// Enqueue skips a message whose DedupKey was enqueued before, within the store's deduplication window.
	Enqueue(ctx context.Context, tx Tx, msgs ...Message) error

	// Offer is like Enqueue and returns the indexes of the messages that it skipped.
	Offer(ctx context.Context, tx Tx, msgs ...Message) (repeats []int, err error)
}
