// Package admin is the port that operators use: deferred messages, blocked keys, feeds, and what
// can be done about them. Every change is recorded with who made it and why.
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
	// ErrBare means that the store has not kept the content of a message; see [feeds.Deferral]. It
	// matches [ErrRefused].
	ErrBare error = &RefusedError{"the message was deferred without its content, which the store refused", "send it from the log, or discard it"}
)

// RefusedError reports why an operation was refused, and what would make it possible.
type RefusedError struct{ Reason, Remedy string }

func (e *RefusedError) Error() string { return "admin: " + e.Reason + "; " + e.Remedy }

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// By identifies who makes a change, and why.
type By struct {
	Who string `json:"who"` // a person or a program, such as "ann@host"
	Why string `json:"why,omitempty"`
}

// DeadLetters gives access to deferred messages, dead letters included.
type DeadLetters interface {
	// List returns up to limit messages that match, oldest first; those of one feed are in the
	// order of the log. To get the next page, pass the last message of the previous page as after.
	// Payloads may be missing, unless the filter has an ID.
	List(ctx context.Context, filter Filter, after *feeds.Deferred, limit int) ([]feeds.Deferred, error)

	// Count returns the number of matching messages by status. It stops counting each status at
	// limit, so that it is fast however many there are. A limit of 0 counts all.
	Count(ctx context.Context, filter Filter, limit int) (map[feeds.Status]int, error)

	// Groups returns the most frequent errors of the matching messages, most frequent first, at
	// most limit. It examines only a sample, of the newest messages where possible, so that it is
	// fast however many there are; Sampled in the result is the size of the sample. Errors that
	// differ only in numbers and IDs count as one.
	Groups(ctx context.Context, filter Filter, sample, limit int) (Groups, error)

	// Blocked returns up to limit blocked keys, those blocked for longest first. An empty feed
	// means all feeds.
	Blocked(ctx context.Context, feed string, limit int) ([]BlockedKey, error)

	// Act applies an act to up to limit of the matching messages to which it can be applied, oldest
	// first, and returns their number. A limit of 0 means no limit. The act is recorded, in several
	// entries if there are very many messages.
	Act(ctx context.Context, by By, act Act, filter Filter, limit int) (int, error)

	// Edit replaces type, topic, routing key, content type, headers and payload of a dead or parked
	// message, and makes it due. The record keeps the previous content. It returns [ErrBare] for a
	// message without its content.
	Edit(ctx context.Context, by By, feed string, id postrider.ID, edited postrider.Message) error
}

// Act is an action on deferred messages.
type Act string

const (
	// Retry makes a message due now and resets its attempts. It applies to messages that have their
	// content and are dead, parked, held, or waiting for their next attempt.
	Retry Act = "retry"
	// Skip unblocks the messages behind a dead, failing or held one. The message remains, as a dead
	// letter that blocks nothing.
	Skip Act = "skip"
	// Park defers a message indefinitely and unblocks those behind it.
	Park Act = "park"
	// Discard removes a dead or parked message. The record keeps its content.
	Discard Act = "discard"
)

// Excluder is implemented by a store that lets operators park or discard a message of the log
// before a feed has passed it.
type Excluder interface {
	// Exclude parks or discards such a message. The feed's relays learn of it with their next
	// [feeds.Feed.Balance]. From then on they do not send it, and continue with the messages behind
	// it in its key. If it is being sent at that moment, it may still arrive. [Park] defers a copy,
	// which is like any other parked message.
	//
	// Exclude returns [ErrNoFeed] or [ErrNoMessage], or a [*RefusedError] if the feed has passed or
	// deferred the message, or if [MaxExcluded] messages are excluded already. It is recorded like
	// an act.
	Exclude(ctx context.Context, by By, act Act, feed string, id postrider.ID) error
}

// MaxExcluded is the maximum number of excluded messages of a feed that it has not passed yet.
// Every Balance returns all of them.
const MaxExcluded = 1000

// The reasons why an [Excluder] refuses.
var (
	// ErrPassed means that the feed has passed the message. It matches [ErrRefused].
	ErrPassed error = &RefusedError{"the feed has passed the message: it was sent, or removed", "there is nothing left to decide"}
	// ErrDeferred means that the feed has deferred the message itself. It matches [ErrRefused].
	ErrDeferred error = &RefusedError{"the feed has deferred the message", "decide about it there"}
	// ErrTooManyExcluded means that [MaxExcluded] messages wait to be passed over. It matches
	// [ErrRefused].
	ErrTooManyExcluded error = &RefusedError{"1,000 messages of the feed wait to be passed over", "let its relays come to them first"}
)

// From returns the statuses of messages to which the act can be applied.
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

// BlockedKey is a key whose messages wait behind a failed one.
type BlockedKey struct {
	Feed    string         `json:"feed"`
	Key     string         `json:"key"`
	Since   time.Time      `json:"since"`   // when its first message was deferred
	Waiting int            `json:"waiting"` // messages behind the first one
	Head    feeds.Deferred `json:"-"`       // without its payload
}

// Feeds manages the feeds of a store.
type Feeds interface {
	// ListFeeds returns all feeds, sorted by name.
	ListFeeds(ctx context.Context) ([]Feed, error)
	// AddFeed creates a feed. It begins with the messages that are enqueued from now on or, if
	// oldest is set, with the oldest message that the store still holds.
	AddFeed(ctx context.Context, by By, name string, oldest bool) error
	// RemoveFeed removes a feed and its deferred messages. It is refused while relays serve the
	// feed.
	RemoveFeed(ctx context.Context, by By, name string) error
	// PauseFeed pauses a feed or resumes it. Relays of a paused feed finish the messages in flight
	// and send no more.
	PauseFeed(ctx context.Context, by By, name string, paused bool) error
	// Rewind moves the feed back to the first message that was enqueued at or after a time, or to a
	// given message. Undelivered messages remain to be delivered. It returns how many messages will
	// be sent again.
	Rewind(ctx context.Context, by By, name string, to Point) (int, error)
}

// Sharder is implemented by a store that can change the number of shards of a feed while relays
// serve it.
type Sharder interface {
	// ChangeShards requests another number of shards, and reports whether the feed has it. The
	// feed's relays carry out the change. Call ChangeShards again until it returns true; if there
	// is no relay, each call takes the next step itself. Messages stay in order, and the change
	// causes no duplicates. It returns a [*RefusedError] while another change is in progress, or
	// while a tenant has a slice of its own.
	ChangeShards(ctx context.Context, by By, feed string, shards int) (done bool, err error)
}

// Point is a position in the log: a message or, if ID is zero, a time.
type Point struct {
	Time time.Time
	ID   postrider.ID
}

// Feed describes a feed and its progress.
type Feed struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Paused  bool      `json:"paused"`
	// Destination is where its relays send to, if a relay has reported it.
	Destination string    `json:"destination,omitempty"`
	Shards      int       `json:"shards"`              // into which its keys are divided
	ShardsTo    int       `json:"shards_to,omitempty"` // target number of a change in progress
	Members     int       `json:"members"`             // relays that serve the feed
	Pending     int       `json:"pending"`             // messages not delivered; the store may stop counting at 1,000,000
	Oldest      time.Time `json:"oldest,omitzero"`     // when the oldest of these was enqueued
	Settled     time.Time `json:"settled,omitzero"`    // when a relay last recorded progress
	Deferred    int       `json:"deferred"`            // scheduled, held, waiting, or to be retried
	Dead        int       `json:"dead"`
	Parked      int       `json:"parked"`
	Blocked     int       `json:"blocked"` // keys
	NextRetry   time.Time `json:"next_retry,omitzero"`
	// Canary is the enqueue time of the newest canary that was delivered, in the shard that is
	// furthest behind. It is zero without canaries. If it is older than a few seconds, the feed
	// does not make progress, even if everything else looks well.
	Canary time.Time `json:"canary,omitzero"`
}

// Records is the audit log. Entries cannot be changed or removed.
type Records interface {
	// Audit returns up to limit entries made before the entry with the given number, newest first,
	// of one feed or, if feed is empty, of all.
	Audit(ctx context.Context, feed string, before int64, limit int) ([]Entry, error)
	// Reveal records that a user is shown the full content of a message, including what is normally
	// hidden. The caller must not show it unless Reveal returns nil.
	Reveal(ctx context.Context, by By, feed string, id postrider.ID) error
}

// Entry is one record of the audit log.
type Entry struct {
	N      int64          `json:"n"`
	At     time.Time      `json:"at"`
	Who    string         `json:"who"`
	Login  string         `json:"login,omitempty"` // the database user
	Action string         `json:"action"`
	Why    string         `json:"why,omitempty"`
	Feed   string         `json:"feed,omitempty"`
	Count  int            `json:"count"`            // messages affected
	Target map[string]any `json:"target,omitempty"` // what was changed: a filter, a key, a message
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
}
