package inbox

import (
	"context"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Store is the consumer's side of a store. Tx is the transaction type of the consumer's database.
// Implementations are safe for concurrent use, by many processes.
type Store[Tx any] interface {
	// Open registers a consumer and returns how long, at least, it remembers received messages. It
	// is called before any of the other methods.
	Open(ctx context.Context, consumer string) (window time.Duration, err error)

	// Handle records messages as received, calls work with the indexes of those that were not
	// recorded before, if there are any, and commits both. If work fails, or the database refuses
	// the commit, nothing is written and the error is a [*FailedError]. After any other error the
	// outcome is unknown: call Handle again, and it returns the outcome of each message.
	//
	// A message of a blocked key is deferred as waiting. One outside of the window becomes a dead
	// letter, unless late is set. Work does not see either. Work may be called more than once, each
	// time in a new transaction.
	Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work Work[Tx]) ([]Verdict, error)

	// Claim records a message as received in the caller's own transaction, and reports whether this
	// is the first record. It is for callers that handle retries and order themselves. A message
	// outside of the window is [ErrLate].
	Claim(ctx context.Context, tx Tx, consumer string, id postrider.ID) (fresh bool, err error)

	// Defer records a message as received and defers it, unless it is recorded already.
	Defer(ctx context.Context, consumer string, m postrider.Message, s Deferral) error

	// Retry locks one message that is due, calls work in a transaction, and removes the deferral in
	// the same transaction. If work fails, its effect is undone and decide returns how to defer the
	// message again. If an operator acts on the message meanwhile, the effect of work is undone
	// too.
	Retry(ctx context.Context, consumer string, work func(ctx context.Context, tx Tx, d feeds.Deferred) error, decide func(feeds.Deferred, error) Deferral) (Attempt, error)

	// Heard records that a process works for the consumer, so that operators notice when none does.
	// It is called every few seconds.
	Heard(ctx context.Context, consumer, process string) error

	// Maintain forgets received messages that are out of the window. It is called periodically.
	// Concurrent calls are safe.
	Maintain(ctx context.Context) error
}

// Work handles fresh messages in a transaction. fresh holds their indexes in the msgs of
// [Store.Handle].
type Work[Tx any] func(ctx context.Context, tx Tx, fresh []int) error

// Verdict is the outcome of receiving a message.
type Verdict int

const (
	// Handled means that the message was fresh and that work succeeded.
	Handled Verdict = iota
	// Repeated means that the message had been received before.
	Repeated
	// Waiting means that the message was deferred because an earlier message of its key is
	// deferred.
	Waiting
	// Late means that the message is outside of the window, so that the store cannot know whether
	// it was received before. It became a dead letter.
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
	// Found means that a message was due. Failed is the error of work, if it failed.
	Found  bool
	Failed error
	// Next is the time until a message is due if none was; it is negative if none will be.
	Next time.Duration
}
