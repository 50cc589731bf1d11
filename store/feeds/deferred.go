package feeds

import (
	"context"
	"time"

	"github.com/postrider/postrider"
)

// Status is the state of a message in one feed.
type Status string

// The states of a message in a feed.
const (
	StatusPending   Status = "pending"   // in the log, not yet delivered
	StatusPublished Status = "published" // confirmed by the destination

	// The other states are deferred: these messages have left the order of the log.
	StatusScheduled Status = "scheduled" // until its DeliverAfter
	StatusRetry     Status = "retry"     // it failed; the relay retries it after a backoff
	StatusHeld      Status = "held"      // its queue, topic or endpoint accepts nothing at the moment
	StatusWaiting   Status = "waiting"   // behind an earlier message of its key
	StatusDead      Status = "dead"      // it used up its attempts: a dead letter
	StatusParked    Status = "parked"    // parked by an operator
)

// Deferred is a message that was deferred.
type Deferred struct {
	postrider.Message

	Feed  string
	Shard int
	// Seq is the message's sequence number in the log. It defines the order of the messages of a
	// key.
	Seq    int64
	Status Status
	// Name is the name that the message goes to, for StatusHeld; see [broker.Namer].
	Name string
	// Blocking means that later messages of the key wait for this one.
	Blocking bool
	// Attempts is the number of counted attempts: failures for which the message itself may be the
	// cause.
	Attempts int
	// LastError is the error of the last attempt.
	LastError string
	// EnqueuedAt is when the message was written, DeferredAt when it was deferred, TriedAt when it
	// was last sent. AvailableAt is when it is due; the zero time means not without another event.
	EnqueuedAt, DeferredAt, TriedAt, AvailableAt time.Time
	// Unsure is how long ago the oldest attempt began of which it is unknown whether the message has
	// arrived; 0 if there is none.
	Unsure time.Duration
	// Job is the replay that deferred the message; 0 if none did.
	Job int64
	// Bare means that the store could not keep the message itself: see [Deferral]. Its content is
	// in the log, which keeps it for as long as the dead letter exists.
	Bare bool
}

// Deferral asks for one message of a batch to be deferred.
type Deferral struct {
	Batch *Batch
	Index int // of the message in the batch
	// Status is StatusRetry, StatusHeld, StatusDead or StatusWaiting; or StatusScheduled, for Message.DeliverAfter.
	Status   Status
	Name     string // for StatusHeld
	Blocking bool
	Attempts int
	Delay    time.Duration // before the next attempt, for StatusRetry
	Cause    string        // the error
	Sent     time.Time     // when the oldest attempt began of which it is unknown whether the message has arrived; zero if there is none
	// Bare makes the message a dead letter without content, because the store refuses the message
	// as it is. The store keeps only its ID, its sequence number, when it was written and the first
	// [BareType] characters of its type. It blocks nothing.
	Bare bool
}

// BareType is the number of characters that are kept of the type of a message that is deferred
// without its content.
const BareType = 100

// Conclusion is the outcome of an attempt at a deferred message.
type Conclusion struct {
	Shard     int
	Seq       int64
	Delivered bool // the store removes the message; the other fields are ignored
	Status    Status
	Name      string // for StatusHeld
	Overtaken bool   // later messages of the key no longer wait for it
	Attempts  int
	Delay     time.Duration
	Cause     string
	Sent      time.Time // as in Deferral
}

// Start names a message that is about to be sent.
type Start struct {
	Batch *Batch // nil for a deferred message
	Index int    // of the message in the batch

	Shard int   // for a deferred message
	Seq   int64 // for a deferred message
}

// DueRequest asks for deferred messages that are due.
type DueRequest struct {
	Shards []int
	Limit  int        // approximate maximum number of messages
	Bytes  int        // approximate maximum number of payload bytes, except for a single message; 0 means no limit
	Held   []HeldName // names that accept nothing: their messages of StatusHeld are left out, except for probes
}

// HeldName is a name of a shard that accepts nothing at the moment.
type HeldName struct {
	Shard int
	Name  string
	Probe bool // return one message as a probe: the first of the log behind After or, if there is none, the first of all
	After int64
}

// Due is the answer to a [DueRequest].
type Due struct {
	// Messages are the due messages. For a blocked key these are the first one and some that wait
	// behind it, in the order in which they must be sent; if one of them fails, the rest must wait.
	Messages []Deferred
	// Next is the time until another message is due; negative if none is.
	Next time.Duration
}

// Deferrer stores the messages of a feed that cannot be sent in the order of its log: scheduled
// ones, failed ones, and those that wait behind them. It is part of [Feed]: all calls concern
// shards that the member owns, and an error leaves everything unchanged. Times are those of the
// store's clock.
type Deferrer interface {
	// Defer defers messages, all or none. They count as done when their shard is settled. With
	// Blocking, later messages of the key must not be sent before this one is gone; the caller
	// defers them too, as StatusWaiting. A message of StatusWaiting becomes due at once if the
	// message that blocked its key is already gone. Defer ignores messages that are deferred
	// already.
	Defer(ctx context.Context, msgs []Deferral) error

	// Blocked returns the blocked keys of a shard: their messages must wait. The caller calls it
	// when it takes a shard; from then on only Defer blocks keys.
	Blocked(ctx context.Context, shard int) (keys []string, err error)

	// Due returns the due messages of the shards, and those of StatusHeld whose name is no longer
	// held, the first of the log first. It returns them again until they are concluded.
	Due(ctx context.Context, want DueRequest) (Due, error)

	// Conclude records the outcome of attempts at messages that Due returned. It returns the keys
	// that are no longer blocked. It ignores messages that an operator has handled meanwhile. It
	// deletes what [Deferrer.Suspect] recorded of the messages.
	Conclude(ctx context.Context, done []Conclusion) (free []string, err error)

	// Suspect records that a message of a shard in [Share.Suspects] or [Share.Orphans] is about to
	// be sent. It returns how many members have recorded that, this one included. It deletes what
	// this member recorded for other messages: those attempts have ended. A message whose attempts
	// often start and never end may be what crashes relays. Repeated calls of one member for one
	// message, such as after a lost answer, count once.
	Suspect(ctx context.Context, start Start) (started int, err error)
}
