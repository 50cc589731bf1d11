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
	// Seq is the message's place in the log. Messages of a key go in its order.
	Seq    int64
	Status Status
	// Name is what the message goes to, for StatusHeld; see [broker.Namer].
	Name string
	// Blocking means that later messages of the key wait for this one.
	Blocking bool
	// Attempts is how often the message was sent and may itself have been the reason of the failure.
	Attempts int
	// LastError is why the last attempt failed.
	LastError string
	// EnqueuedAt is when the message was written, DeferredAt when it was deferred, TriedAt when it was last sent, and
	// AvailableAt when it is due; the zero time means never, or never by itself.
	EnqueuedAt, DeferredAt, TriedAt, AvailableAt time.Time
	// Job is the replay that brought the message here; 0 if none did.
	Job int64
	// Bare means that the store could not keep the message itself: see [Deferral]. Its content is in the log, which keeps it for
	// as long as the dead letter exists.
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
	// Bare asks for a dead letter without content, because the store refuses the message as it is: only its ID, its place in the
	// log, when it was written and the first [BareType] characters of its type are kept, and it blocks nothing.
	Bare bool
}

// BareType is how much is kept of the type of a message that is deferred without its content.
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
}

// Start names a message that is about to be sent.
type Start struct {
	Batch *Batch // nil for a message that was deferred
	Index int    // of the message in the batch

	Shard int   // of a message that was deferred,
	Seq   int64 // and its place
}

// DueRequest asks for messages that were deferred.
type DueRequest struct {
	Shards []int
	Limit  int        // the most messages, about
	Bytes  int        // the most bytes of payload, about; one message may be larger. 0 means no limit
	Held   []HeldName // names that accept nothing: their messages of StatusHeld are left out
}

// HeldName is a name of a shard that accepts nothing at the moment.
type HeldName struct {
	Shard int
	Name  string
	Probe bool // one message is wanted all the same: the first of the log behind After or, if there is none, the first of all
	After int64
}

// Due is what there is to do for messages that were deferred.
type Due struct {
	// Messages are those whose time has come. Of a key that is blocked these are the first one and some that wait behind
	// it, in the order in which they must go; one of them that fails holds back the rest.
	Messages []Deferred
	// Next is how long it takes until another one is due; negative if none is.
	Next time.Duration
}

// Deferrer keeps the messages of a feed that cannot go in the order of its log: those that wait for their time, those
// that have failed, and those behind them. It is a part of [Feed]: all of it is about shards that the member holds, and
// an error leaves everything as it was. Times are those of the store's clock.
type Deferrer interface {
	// Defer defers messages, all or none. They count as done when their shard is settled. With Blocking, later messages
	// of the key must not be sent before this one is gone; the caller defers them too, as StatusWaiting. A message
	// becomes due if the message that blocked its key is already gone. Defer ignores messages that are deferred already.
	Defer(ctx context.Context, msgs []Deferral) error

	// Blocked returns the keys of a shard whose messages have to wait. It is asked when a shard is taken; from then on
	// only Defer blocks keys.
	Blocked(ctx context.Context, shard int) (keys []string, err error)

	// Due returns messages of the shards whose time has come, and those of StatusHeld whose name is not held any more, the
	// first of the log first. They are returned again until they are concluded.
	Due(ctx context.Context, want DueRequest) (Due, error)

	// Conclude records what has become of messages that Due has returned. It returns the keys that are free again.
	// Messages that an operator has meanwhile decided about are left alone. What [Deferrer.Suspect] has noted of the messages
	// is forgotten.
	Conclude(ctx context.Context, done []Conclusion) (free []string, err error)

	// Suspect notes that a message of a shard among [Share.Suspects] or [Share.Orphans] is about to be sent, and returns how
	// many members have noted that, this one included. It forgets what the member has noted of others before: those attempts
	// have ended. What was often begun and never ended may be what kills relays. Calls of one member for one message, such
	// as those after a lost answer, count once.
	Suspect(ctx context.Context, start Start) (started int, err error)
}
