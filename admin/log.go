package admin

import (
	"context"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Log lists enqueued messages and their progress.
type Log interface {
	// Messages returns up to limit messages of the log that match, newest first, with their
	// progress in a feed. If before is not 0, it returns only messages before that position. It
	// leaves out canaries, unless the filter names their type. It leaves out payloads, unless the
	// filter has an ID, so that the cost of a list does not depend on the size of the messages.
	//
	// It returns quickly however long the log is. A page may be short or even empty, and still have
	// a Next to continue from.
	Messages(ctx context.Context, feed string, filter Filter, before int64, limit int) (LogPage, error)

	// Journey returns everything that is known of a message, or [ErrNoMessage]. It finds a message
	// that the log has dropped if a dead letter of a feed, the inbox of a consumer, or the audit
	// log still has it.
	Journey(ctx context.Context, id postrider.ID) (*Journey, error)
}

// LogPage is a page of [Log.Messages].
type LogPage struct {
	Items []Logged // newest first
	Next  int64    // position to continue before; 0 if the whole log was searched
	// Until is the enqueue time that the search has reached. It is zero if Next is.
	Until time.Time
}

// Logged is a message of the log, with its progress in one feed.
type Logged struct {
	postrider.Message
	Feed        string
	Seq         int64
	Shard       int
	Status      feeds.Status
	Attempts    int
	EnqueuedAt  time.Time
	AvailableAt time.Time
	LastError   string
	Size        int // size of the payload in bytes, even if the payload is left out
}

// Journey is everything that is known of a message.
type Journey struct {
	Message    postrider.Message
	InLog      bool // false if the log has dropped it; then the payload may be missing
	Seq        int64
	EnqueuedAt time.Time
	// Searched is how far back the log was searched, if the message was not found there and may be
	// older. If the ID contains a time, the log was searched at that time too.
	Searched time.Time
	Feeds    []Leg     // sorted by name
	Receipts []Receipt // sorted by consumer
	Records  []Entry   // acts of operators on it, oldest first
}

// Leg is the progress of a message in one feed, or its deferral by a consumer: then Feed begins
// with "inbox/".
type Leg struct {
	Feed       string       `json:"feed"`
	Status     feeds.Status `json:"status"`
	Blocking   bool         `json:"blocking,omitempty"`
	Attempts   int          `json:"attempts"`
	LastError  string       `json:"last_error,omitempty"`
	DeferredAt time.Time    `json:"deferred_at,omitzero"`
	TriedAt    time.Time    `json:"tried_at,omitzero"`
	// Excluded means that an operator excluded the message before the feed reached it: it is not
	// sent.
	Excluded    bool      `json:"excluded,omitempty"`
	AvailableAt time.Time `json:"available_at,omitzero"`
	// Settled is when a relay recorded the message, or a later one of its shard, as delivered: it
	// was published at that time at the latest. It is zero if that is unknown.
	Settled time.Time `json:"settled,omitzero"`
}

// Receipt records that a consumer handled a message, in this database.
type Receipt struct {
	Consumer string    `json:"consumer"`
	At       time.Time `json:"at"`
}
