// Package admin is the operator's side of a store: what is deferred and why, which keys are blocked, what feeds there are,
// and what can be done about it. Whatever changes something is recorded, with who and why.
package admin

import (
	"context"
	"errors"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

var (
	// ErrNoFeed means that there is no feed of that name.
	ErrNoFeed = feeds.ErrNoFeed
	// ErrNoMessage means that no message matches.
	ErrNoMessage = errors.New("admin: no such message")
	// ErrRefused matches every [*RefusedError].
	ErrRefused = errors.New("admin: refused")
	// ErrBare means that the store has not kept the content of a message; see [feeds.Deferral]. It matches [ErrRefused].
	ErrBare error = &RefusedError{"the message was deferred without its content, which the store refused", "send it from the log, or discard it"}
)

// RefusedError says why something was not done, and what would make it possible.
type RefusedError struct{ Reason, Remedy string }

func (e *RefusedError) Error() string { return "admin: " + e.Reason + "; " + e.Remedy }

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// By is who wants something done, and why.
type By struct {
	Who string `json:"who"` // a person or a program, such as "ann@host"
	Why string `json:"why,omitempty"`
}

// DeadLetters are the messages that are deferred.
type DeadLetters interface {
	// List returns up to limit messages that match, oldest first: of one feed in the order of the log. Those of a page
	// that follows lie behind the last of the page before. Payloads may be left out, unless the filter has an ID.
	List(ctx context.Context, filter Filter, after *feeds.Deferred, limit int) ([]feeds.Deferred, error)

	// Count returns how many match, by status: of each no more than limit are counted, so that it is quick however many there
	// are. 0 counts all.
	Count(ctx context.Context, filter Filter, limit int) (map[feeds.Status]int, error)

	// Groups returns the errors that most of the messages that match have in common, most frequent first, at most limit. It
	// looks at a sample of them only, the newest where it can, so that it is quick however many there are; Sampled of the
	// answer says at how many. Texts that differ in numbers and IDs alone count as one.
	Groups(ctx context.Context, filter Filter, sample, limit int) (Groups, error)

	// Blocked returns up to limit keys with messages that wait, those that have been blocked for longest first. An empty
	// feed means all.
	Blocked(ctx context.Context, feed string, limit int) ([]BlockedKey, error)

	// Act does something to up to limit of the messages that match and to which it can be done, oldest first, and returns
	// to how many. 0 is no limit. It is recorded, of very many in several entries.
	Act(ctx context.Context, by By, act Act, filter Filter, limit int) (int, error)

	// Edit returns [ErrBare] for a message without its content. Otherwise it replaces type, topic, routing key, content type, headers and payload of a message that is dead or parked, and
	// has it sent. The record keeps what it was.
	Edit(ctx context.Context, by By, feed string, id postrider.ID, edited postrider.Message) error
}

// Act is something that can be done to messages that are deferred.
type Act string

const (
	// Retry has a message with its content that is dead, parked, held, or pausing before its next attempt sent now, with all its attempts ahead
	// of it.
	Retry Act = "retry"
	// Skip lets the messages behind a dead, failing or held one go on. It stays, as a dead letter that blocks nothing.
	Skip Act = "skip"
	// Park defers a message for good, and lets those behind it go on.
	Park Act = "park"
	// Discard removes a message that is dead or parked. The record keeps what it was.
	Discard Act = "discard"
)

// Excluder is implemented by a store whose operators can decide about a message of the log before a feed has passed it.
type Excluder interface {
	// Exclude parks or discards such a message. The feed's relays learn of it with their next [feeds.Feed.Balance]: from then
	// on none sends it, and what stands behind it in its key goes on. One that is just being sent may still arrive. [Park] sets a copy aside, which
	// is like every other parked message.
	//
	// Exclude returns [ErrNoFeed] or [ErrNoMessage], or a [*RefusedError] if the feed has passed the message, or has set it
	// aside itself, or if [MaxExcluded] messages wait to be passed. It is recorded as the act is.
	Exclude(ctx context.Context, by By, act Act, feed string, id postrider.ID) error
}

// MaxExcluded is how many messages of a feed can be excluded at a time: relays hear of all of them with every Balance.
const MaxExcluded = 1000

// Why [Excluder] refuses.
var (
	// ErrPassed means that the feed has passed the message. It matches [ErrRefused].
	ErrPassed error = &RefusedError{"the feed has passed the message: it was sent, or removed", "there is nothing left to decide"}
	// ErrSetAside means that the feed has deferred the message itself. It matches [ErrRefused].
	ErrSetAside error = &RefusedError{"the feed has deferred the message", "decide about it there"}
	// ErrTooManyExcluded means that [MaxExcluded] messages wait to be passed over. It matches [ErrRefused].
	ErrTooManyExcluded error = &RefusedError{"1,000 messages of the feed wait to be passed over", "let its relays come to them first"}
)

// From returns the statuses of messages to which the act can be done.
func (a Act) From() []feeds.Status {
	switch a {
	case Retry:
		return []feeds.Status{feeds.StatusDead, feeds.StatusParked, feeds.StatusRetry, feeds.StatusHeld}
	case Skip, Park:
		return []feeds.Status{feeds.StatusDead, feeds.StatusRetry, feeds.StatusHeld}
	case Discard:
		return []feeds.Status{feeds.StatusDead, feeds.StatusParked}
	}
	return nil
}

// BlockedKey is a key whose messages wait behind one that has failed.
type BlockedKey struct {
	Feed    string         `json:"feed"`
	Key     string         `json:"key"`
	Since   time.Time      `json:"since"`   // when its first message was deferred
	Waiting int            `json:"waiting"` // messages behind the first one
	Head    feeds.Deferred `json:"-"`       // without its payload
}

// Feeds are the feeds of a store.
type Feeds interface {
	// ListFeeds returns all feeds, by name.
	ListFeeds(ctx context.Context) ([]Feed, error)
	// AddFeed creates a feed, which begins with the messages that are enqueued from now on or, with oldest, with the oldest
	// that the store still holds.
	AddFeed(ctx context.Context, by By, name string, oldest bool) error
	// RemoveFeed forgets a feed and what it had deferred. It is refused while relays serve it.
	RemoveFeed(ctx context.Context, by By, name string) error
	// PauseFeed makes relays finish what is in flight and carry nothing more of the feed, or go on.
	PauseFeed(ctx context.Context, by By, name string, paused bool) error
	// Rewind makes the feed begin anew with the first message that was enqueued at or after a time, or with a certain
	// message. What is not delivered yet remains to be delivered. It returns how many messages will be sent again.
	Rewind(ctx context.Context, by By, name string, to Point) (int, error)
}

// Sharder is implemented by a store whose feeds can have another number of shards while relays serve them.
type Sharder interface {
	// ChangeShards asks for another number of shards, and reports whether the feed has it. The feed's relays carry it out: who waits for
	// it calls this again, which also takes the next step if there is no relay. Messages stay in order, and none is sent twice for it.
	// It is a [RefusedError] while another change is under way, or a tenant is read apart.
	ChangeShards(ctx context.Context, by By, feed string, shards int) (done bool, err error)
}

// Point is a place in the log: a message or, if ID is zero, a time.
type Point struct {
	Time time.Time
	ID   postrider.ID
}

// Feed is what there is to know about a feed.
type Feed struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Paused  bool      `json:"paused"`
	// Destination is where its relays send to, if one of them has said so.
	Destination string    `json:"destination,omitempty"`
	Shards      int       `json:"shards"`              // into which its keys are divided
	ShardsTo    int       `json:"shards_to,omitempty"` // how many it is about to have
	Members     int       `json:"members"`             // relays that serve it
	Pending     int       `json:"pending"`             // messages not delivered; the store may stop counting at 1,000,000
	Oldest      time.Time `json:"oldest,omitzero"`     // when the oldest of these was enqueued
	Settled     time.Time `json:"settled,omitzero"`    // when a relay last recorded anything
	Deferred    int       `json:"deferred"`            // scheduled, held, waiting or to be tried again
	Dead        int       `json:"dead"`
	Parked      int       `json:"parked"`
	Blocked     int       `json:"blocked"` // keys
	NextRetry   time.Time `json:"next_retry,omitzero"`
	// Canary is when the newest canary was enqueued that has come through, of the shard where that is longest ago. It is
	// zero if there are no canaries. Older than a few seconds, it means that the feed stands, whatever else looks well.
	Canary time.Time `json:"canary,omitzero"`
}

// Records are what was done and by whom. Nothing can change or remove them.
type Records interface {
	// Audit returns up to limit entries that were made before another one, newest first; of one feed, or all if that is
	// empty.
	Audit(ctx context.Context, feed string, before int64, limit int) ([]Entry, error)
	// Reveal records that somebody is shown what a message carries, also what is hidden from everybody else. Who shows it does so
	// only if this returns nil.
	Reveal(ctx context.Context, by By, feed string, id postrider.ID) error
}

// Entry is one record.
type Entry struct {
	N      int64          `json:"n"`
	At     time.Time      `json:"at"`
	Who    string         `json:"who"`
	Login  string         `json:"login,omitempty"` // as which the database knows them
	Action string         `json:"action"`
	Why    string         `json:"why,omitempty"`
	Feed   string         `json:"feed,omitempty"`
	Count  int            `json:"count"`            // messages concerned
	Target map[string]any `json:"target,omitempty"` // what it was done to: a filter, a key, a message
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
}
