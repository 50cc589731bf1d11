// Package feeds defines the interface between relays and stores: how a relay reads messages in
// order, settles what was delivered, and defers messages that cannot be sent now. Applications do
// not use it. A new store implements it and runs the tests of package storetest.
package feeds

import (
	"context"
	"time"

	"github.com/postrider/postrider"
)

// Store is the relay's side of a store: a log of committed messages, split into shards by ordering key. Any number of
// feeds read it, each at its own pace.
type Store interface {
	// Open joins the named feed as one relay process. It creates the first feed of a store. Any other feed must exist,
	// unless the member sets Create: a mistyped name would send the whole log again. Otherwise Open returns a
	// [*NoFeedError]. A feed remembers the destination of its members; Open returns a [*DestinationError] for a
	// different one, and [ErrSchema] if the store's schema does not fit this program.
	Open(ctx context.Context, feed string, member Member) (Feed, error)
}

// Member describes a relay process that joins a feed.
type Member struct {
	// Name is shown to operators. It need not be unique: the store assigns each member an ID.
	Name string
	// Lease is how long the member owns a shard without renewing its lease.
	Lease time.Duration

	// Create makes Open create the feed if it does not exist. The store records that, with the number of messages that the
	// feed will send.
	Create bool
	// From is where the feed begins if Open creates it.
	From Origin
	// Beside names the other feeds that the member's process serves. If the store has no feed yet,
	// Open creates them too, because none of several feeds that start together is the first.
	Beside []string
	// Destination describes in a few words where the member sends to, such as
	// "nats://orders.example", without secrets. If it is empty, Open accepts any destination that
	// the feed remembers.
	Destination string
	// Force makes the feed remember Destination instead of another one. The store records that.
	Force bool
}

// Origin is where a new feed begins. The zero value means with the oldest message that the store still holds.
type Origin struct {
	Now  bool      // with messages enqueued from now on
	Time time.Time // if not zero: with the first message enqueued at or after this time
}

// Feed is one relay process's membership in a feed. No other member reads the shards that it owns. The store is the only
// coordinator.
//
// Callers must not call one method concurrently with itself. Different methods, and those of [Deferrer], may run
// concurrently. A Feed stays usable after an error: the caller retries. After [ErrReset], discard every [Batch] that was
// read before.
type Feed interface {
	// Balance announces the member, takes free shards up to its fair share and returns the shards that it owns. A shard
	// is free if its owner released it or if its lease expired. Balance does not renew leases. The member has lost a
	// shard that is missing from the answer: discard everything read from it, even if a later Balance returns it again.
	// Balance returns [ErrForeign], and takes nothing, if the ledger belongs to another database.
	Balance(ctx context.Context) (Share, error)

	// Read returns the next committed messages of the requested shards in delivery order, at most one batch per shard.
	// It omits a shard only if it has no further messages: if it has not looked at all of them, it may return an empty
	// batch with More. It returns each message once while the member owns the shard. Messages of one key come in commit
	// order: if a's transaction committed before b was enqueued, a comes first.
	Read(ctx context.Context, want []Demand) ([]Batch, error)

	// Settle records what the destination confirmed and renews the leases of the shards that it names. It returns the
	// shards that the member has lost: Settle does not move their positions, and the member must not send what it read
	// from them.
	Settle(ctx context.Context, marks []Mark) (lost []int, err error)

	// Release settles the marks and releases their shards, so that other members can take them at once.
	Release(ctx context.Context, marks []Mark) error

	// Close leaves the feed. Shards that were not released stay leased until their leases expire.
	Close(ctx context.Context) error

	Deferrer
}

// Maintainer is implemented by a [Store] that needs housekeeping, such as dropping messages that every feed delivered.
// Relays call Maintain periodically. Concurrent calls are safe.
type Maintainer interface {
	Maintain(ctx context.Context) error
}

// CanaryType is the type of canary messages, which prove that the pipeline works. Relays process them like all others
// but do not publish them.
const CanaryType = "postrider.canary"

// Canary is implemented by a [Store] that can put a message of [CanaryType] into each shard.
type Canary interface {
	// Canary puts one message into each shard, unless one was put there within the given time.
	Canary(ctx context.Context, within time.Duration) error
}

// Share describes the part of a feed that a member owns.
type Share struct {
	Shards  []int // owned now
	Quota   int   // the member's fair share; it should release shards beyond it
	Members int   // how many relay processes serve the feed

	// Deferred is set when messages are deferred that are due now or will be.
	Deferred bool
	// Paused is set if an operator paused the feed. The quota is then 0.
	Paused bool
	// Suspects are owned shards whose last owners died one after another without progress: one of the next messages may
	// crash relays.
	Suspects []int
	// Orphans are owned shards that their last owner did not release and that were not settled since: a deferred message
	// may have crashed it. They include Suspects.
	Orphans []int
	// Excluded are messages of the log, of any shard, that an operator has handled, for instance
	// discarded, before the feed has passed them. The member does not send them and counts them as
	// done. They are few, and listed until the feed has passed them.
	Excluded []postrider.ID
	// Moving is set while the number of the feed's shards is about to change: the member calls
	// Balance again soon.
	Moving bool
	// Stopped are owned shards of which nothing more can be read until all of them have reached the
	// same position. The member releases them when everything it has read of them is settled.
	Stopped []int
	// Slices are the elements of Shards that are slices of another one; see [Splitter]. A member
	// owns a slice together with its shard.
	Slices []Slice

	// ID tells the feed from all other feeds, of this database and of others. Copies of a database
	// share it.
	ID string
	// Terms has a number for each element of Shards that is higher than every number that an earlier
	// owner of it was given. It may grow while the member owns the shard.
	Terms map[int]int64
	// Unsure has an element for each shard that the member did not own before and of which messages
	// may have been sent that are not settled, because an owner did not release it or did not know
	// their outcome: how long ago the oldest attempt began, at most. For other shards it means nothing.
	Unsure map[int]time.Duration
}

// Slice is the part of a shard that belongs to one tenant and is read separately.
type Slice struct {
	Shard  int // its own number
	Base   int // the shard that it belongs to
	Tenant string
}

// Splitter is implemented by a [Feed] whose store can read one tenant's part of a shard separately,
// so that a long backlog of one tenant does not delay the others. Both methods release the given
// shards; the next Balance takes them again.
type Splitter interface {
	// Split makes a tenant's part of a shard a slice, starting at the mark. It reports false if
	// that is not possible, for instance because another member has taken the shard.
	Split(ctx context.Context, shard Mark, tenant string) (bool, error)
	// Merge makes a slice part of its shard again. It reports false if their positions differ.
	Merge(ctx context.Context, shard, slice Mark) (bool, error)
}

// Demand asks for up to Limit messages of a shard with up to Bytes of payload in total. A store may
// return a few more if it cannot cut exactly, and one message that is larger than Bytes.
type Demand struct {
	Shard int
	Limit int
	Bytes int // 0 means no limit

	// Doubt asks for [Batch.Deferred]: former owners may have deferred messages that they did not
	// settle.
	Doubt bool
}

// Batch is a run of consecutive messages of one shard. The receiver owns the messages.
type Batch struct {
	Shard    int
	Messages []postrider.Message
	Deferred []int // with Demand.Doubt: indexes of messages that are deferred already, in ascending order
	More     bool  // more messages wait: read again without delay
	Cursor   any   // private to the store
}

// Mark is the confirmed position of a shard: the first Done messages of Batch, and every batch of
// that shard read before it. A Mark without a Batch moves nothing and renews the lease.
type Mark struct {
	Shard int
	Batch *Batch
	Done  int

	// Sent is when the oldest attempt began to send a message beyond the position, or one whose
	// outcome was still unknown when the mark was made. Without one it is when the mark was made, for
	// Settle, because the next attempt may begin at once, and zero for Release.
	Sent time.Time
}
