package inbox

import (
	"context"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Store is the consumer's side of a store. Tx is the transaction type of the consumer's database. Implementations are safe
// for concurrent use, by many processes.
type Store[Tx any] interface {
	// Open makes a consumer known, and returns for how long at least it remembers what it has received. It is called before
	// any of the other methods.
	Open(ctx context.Context, consumer string) (window time.Duration, err error)

	// Handle records messages as received, calls work with the indexes of those that nobody has recorded before, if there are
	// any, and commits both. When work fails, or the database refuses the commit, nothing of it has happened and the error is
	// a [*FailedError]. After any other error Handle is to be called again: it will tell what has become of the messages.
	//
	// A message of a key that is blocked is deferred as waiting, and one outside of the window as dead, unless late is set;
	// work does not see them. Work may be called more than once, in a new transaction each time.
	Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work Work[Tx]) ([]Verdict, error)

	// Claim records a message as received in the caller's own transaction, and reports whether the caller is the first. It is
	// for those who do without the rest: they see to retries and order themselves. A message outside of the window is
	// [ErrLate].
	Claim(ctx context.Context, tx Tx, consumer string, id postrider.ID) (fresh bool, err error)

	// Defer records a message as received and defers it, unless somebody else has recorded it.
	Defer(ctx context.Context, consumer string, m postrider.Message, s Deferral) error

	// Retry takes one message that is due, which nobody else gets meanwhile, calls work in a transaction, and forgets that the
	// message was deferred in the same transaction. When work fails, its effect is undone and judge says what is to become of
	// the message. Work is called in vain, and undone, if an operator decides about the message meanwhile.
	Retry(ctx context.Context, consumer string, work func(ctx context.Context, tx Tx, d feeds.Deferred) error, judge func(feeds.Deferred, error) Deferral) (Attempt, error)

	// Heard notes that a process works for the consumer, so that operators see when none does. It is called every few seconds.
	Heard(ctx context.Context, consumer, process string) error

	// Maintain forgets what is out of the window. It is called now and then; several at once do no harm.
	Maintain(ctx context.Context) error
}

// Work handles fresh messages in a transaction; fresh holds their indexes in the arguments of [Store.Handle].
type Work[Tx any] func(ctx context.Context, tx Tx, fresh []int) error

// Verdict is the outcome of receiving a message.
type Verdict int

const (
	// Handled means that the message was fresh, and work has done what it asks for.
	Handled Verdict = iota
	// Repeated means that the message had been received before.
	Repeated
	// Waiting means that an earlier message of the key is deferred, and so is this one.
	Waiting
	// Late means that the message is outside of the window, so that nobody knows whether it was received before. It is a dead
	// letter now.
	Late
)

// String returns the verdict as one lower-case word.
func (v Verdict) String() string {
	switch v {
	case Handled:
		return "handled"
	case Repeated:
		return "repeated"
	case Waiting:
		return "waiting"
	default:
		return "late"
	}
}

// Deferral describes how to defer a message.
type Deferral struct {
	// Status is [feeds.StatusRetry] or [feeds.StatusDead].
	Status feeds.Status
	// Blocking makes later messages of the key wait for this one.
	Blocking bool
	Attempts int           // so far
	Delay    time.Duration // before the next one
	Cause    string
}

// Attempt is the result of [Store.Retry].
type Attempt struct {
	// Found means that a message was due; Failed is the error of work, if it has failed.
	Found  bool
	Failed error
	// Next is how long it takes until something is due, if nothing was; negative if nothing will be.
	Next time.Duration
}
