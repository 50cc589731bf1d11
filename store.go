package postrider

import (
	"context"
	"time"
)

// Outbox is the producer's side of a store. Tx is the transaction type that the application already has, such as
// pgx.Tx or *sql.Tx; an application that holds its outbox as this interface changes stores by changing its wiring.
type Outbox[Tx any] interface {
	// Enqueue writes the messages in the caller's transaction: they exist if and only if tx commits. It makes one
	// round trip, whatever the number of messages, and either accepts all or returns an error; after an error from
	// the database the caller must roll back, as after any other failed statement. A message that cannot be accepted
	// is reported as an [*InvalidError] before anything is written.
	//
	// A message whose DedupKey was enqueued before, within the store's window, is left out: there is one already.
	Enqueue(ctx context.Context, tx Tx, msgs ...Message) error

	// Offer is Enqueue for those who want to know: it returns the indexes of the messages that were left out.
	Offer(ctx context.Context, tx Tx, msgs ...Message) (repeats []int, err error)
}

// Store is the relay's side of a store: a log of committed messages, split into shards by ordering key, that any
// number of feeds read at their own pace.
type Store interface {
	// Open joins the named feed as one relay process. The first feed of a store is created; any other has to exist, or the
	// member asks for it with Create, because a mistyped name would send the whole log again: otherwise Open returns a
	// [*NoFeedError]. A feed remembers the destination of its members, and Open returns a [*DestinationError] to one that
	// brings another. It returns [ErrSchema] when the store is not set up for this program.
	Open(ctx context.Context, feed string, member Member) (Feed, error)
}

// Member introduces a relay process to a feed.
type Member struct {
	// Name is shown to operators. It need not be unique: the store tells members apart by an ID of its own.
	Name string
	// Lease is how long a shard stays with a member that the store does not hear from.
	Lease time.Duration

	// Create makes Open create the feed if it does not exist. The store records that, with the number of messages that the
	// feed will send.
	Create bool
	// From is where the feed begins if Open creates it.
	From Origin
	// Beside names the other feeds that the member's process serves. If the store has no feed yet, Open creates them too: the
	// first feed need not be asked for, and of several that begin at once each is the first.
	Beside []string
	// Destination says in a few words where the member sends to, such as "nats://orders.example". It contains no secret. A member
	// that leaves it empty is accepted whatever the feed remembers.
	Destination string
	// Force makes the feed remember Destination instead of another one. The store records that.
	Force bool
}

// Origin is where a new feed begins. The zero value means with the oldest message that the store still holds.
type Origin struct {
	Now  bool      // with what is enqueued from now on
	Time time.Time // unless it is zero: with the first message that was enqueued then or later
}

// Feed is one relay process's membership of a feed. The shards that it holds are read by nobody else; the store is the
// only coordinator.
//
// Read is called by one goroutine at a time, and so are the methods that follow it here; different methods, and those of
// [Deferrer], may be called at the same time. An error leaves the Feed usable: the caller tries again. After [ErrReset] every [Batch] handed out
// before is void.
type Feed interface {
	// Balance announces the member, takes free shards up to its fair share and returns what it holds. A shard is free
	// when its holder released it or let its lease run out. It does not renew the leases of shards held already. A shard
	// that is missing from the answer is no longer the member's: everything read from it is to be forgotten, also if a
	// later Balance returns it again. Balance returns [ErrForeign] when the ledger belongs to another database, and
	// takes nothing then.
	Balance(ctx context.Context) (Share, error)

	// Read returns the next committed messages of the shards it is asked for, in delivery order, at most one batch a
	// shard; shards with nothing new are left out. Each message is handed out once for as long as the shard is held.
	// Messages of one key come in commit order: if a's transaction had committed before b was enqueued, a comes first.
	Read(ctx context.Context, want []Demand) ([]Batch, error)

	// Settle records what has been confirmed and renews the leases of the shards it names. It returns the shards that
	// the member has lost: their settled position was not moved, and what was read from them is no longer its to send.
	Settle(ctx context.Context, marks []Mark) (lost []int, err error)

	// Release settles the marks and gives their shards up, so that others can go on at once.
	Release(ctx context.Context, marks []Mark) error

	// Close leaves the feed. Shards that were not released stay leased until their lease runs out.
	Close(ctx context.Context) error

	Deferrer
}

// Maintainer is implemented by a [Store] that has housekeeping to do, such as dropping what every feed has delivered.
// Relays call it now and then; several at once do no harm.
type Maintainer interface {
	Maintain(ctx context.Context) error
}

// CanaryType is the type of messages that prove that others would arrive. Relays carry them like all others, up to the
// destination, and publish none.
const CanaryType = "postrider.canary"

// Canary is implemented by a [Store] that can put a message of [CanaryType] into each shard.
type Canary interface {
	// Canary puts one into each shard, unless somebody has within the given time.
	Canary(ctx context.Context, within time.Duration) error
}

// Share is what a member holds of a feed.
type Share struct {
	Shards  []int // held now
	Quota   int   // how many shards are the member's fair share; it should release what it holds beyond that
	Members int   // how many relay processes serve the feed

	// Deferred is set when messages are set aside that are due now or will be.
	Deferred bool
	// Paused is set when an operator has paused the feed. The quota is 0 then.
	Paused bool
	// Suspects are shards, of those held, whose last holders have died one after the other without any progress: one of
	// the next messages may be the reason.
	Suspects []int
	// Orphans are shards, of those held, whose last holder has not released them, and of which nothing was settled since: it
	// may have died over a message that was set aside. Suspects are among them.
	Orphans []int
	// Excluded are the messages of the log that an operator has decided about before the feed has passed them, of any shard:
	// the member does not send them, and counts them as done. They are few, and named until the feed has passed them.
	Excluded []ID
	// Moving is set while the number of the feed's shards is about to change: the member asks again soon.
	Moving bool
	// Stopped are shards, of those held, of which nothing more can be read before all have come to the same place: the member
	// releases them when what it has read of them is settled.
	Stopped []int
	// Slices are those of Shards that are a part of another one; see [Splitter]. They are held together with it.
	Slices []Slice
}

// Slice is the part of a shard that belongs to one tenant, and is read apart from the rest.
type Slice struct {
	Shard  int // its own number
	Base   int // the shard that it is a part of
	Tenant string
}

// Splitter is implemented by a [Feed] whose store can read one tenant's part of a shard apart from the rest, so that a long
// backlog of one tenant holds up no other. Both methods release what they are given, and the next Balance takes it again.
type Splitter interface {
	// Split makes a tenant's part of a shard a slice, from where the mark puts the shard. It reports false if that was not
	// possible, for instance because another member has taken the shard meanwhile.
	Split(ctx context.Context, shard Mark, tenant string) (bool, error)
	// Merge makes a slice a part of its shard again. It reports false if they stand at different places.
	Merge(ctx context.Context, shard, slice Mark) (bool, error)
}

// Demand asks for up to Limit messages of a shard with up to Bytes of payload in all. A store may return a few more where it
// cannot cut, and one message that is larger than Bytes.
type Demand struct {
	Shard int
	Limit int
	Bytes int // 0 means no limit
}

// Batch is a run of consecutive messages of one shard. Whoever receives it owns the messages.
type Batch struct {
	Shard    int
	Messages []Message
	More     bool // more messages are known to wait: reading again need not be delayed
	Cursor   any  // the store's own; callers leave it alone
}

// Mark says how far a shard has been confirmed: the first Done messages of Batch, and every batch of that shard read
// before it. A Mark without a Batch moves nothing and renews the lease.
type Mark struct {
	Shard int
	Batch *Batch
	Done  int
}
