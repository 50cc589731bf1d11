package admin

import (
	"context"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Log is what was enqueued, and how far each message has come.
type Log interface {
	// Messages returns up to limit messages of the log that match, newest first, with where they stand on their way to a
	// feed; those before a place in the log, if that is not 0. Canaries are left out unless the filter names their type.
	// Payloads are left out, unless the filter has an ID: a list must not cost what the messages weigh.
	//
	// It answers soon however long the log is: a page may be short, even empty, and still have a Next to go on from.
	Messages(ctx context.Context, feed string, filter Filter, before int64, limit int) (LogPage, error)

	// Journey returns all that is known of a message, or [ErrNoMessage]. It is found also when the log has dropped it and
	// only a feed's dead letter, a consumer's inbox or the records remember it.
	Journey(ctx context.Context, id postrider.ID) (*Journey, error)
}

// LogPage is what was found in a part of the log.
type LogPage struct {
	Items []Logged // newest first
	Next  int64    // the place before which more may be found; 0: all of the log was searched
	// Until is when the messages were enqueued that the search has come to. It is zero if Next is.
	Until time.Time
}

// Logged is a message of the log, on its way to one feed.
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
	Size        int // of the payload, in bytes, also where it is left out
}

// Journey is the whole way of a message.
type Journey struct {
	Message    postrider.Message
	InLog      bool // false: the log has dropped it; the message may lack its payload
	Seq        int64
	EnqueuedAt time.Time
	// Searched is how far back the log was searched for the message, if it was not found there and could lie further back. Where
	// its ID tells when it was made, the log was searched at that time too.
	Searched time.Time
	Feeds    []Leg     // by name
	Receipts []Receipt // by consumer
	Records  []Entry   // what operators did to it, oldest first
}

// Leg is a message's way to one feed, or what a consumer has deferred of it: then Feed begins with "inbox/".
type Leg struct {
	Feed       string       `json:"feed"`
	Status     feeds.Status `json:"status"`
	Blocking   bool         `json:"blocking,omitempty"`
	Attempts   int          `json:"attempts"`
	LastError  string       `json:"last_error,omitempty"`
	DeferredAt time.Time    `json:"deferred_at,omitzero"`
	TriedAt    time.Time    `json:"tried_at,omitzero"`
	// Excluded means that an operator has decided about the message before the feed has come to it: it is not sent.
	Excluded    bool      `json:"excluded,omitempty"`
	AvailableAt time.Time `json:"available_at,omitzero"`
	// Settled is when a relay is known to have recorded the message as delivered, or something behind it in its shard: no
	// later than then it was published. It is zero if nobody remembers.
	Settled time.Time `json:"settled,omitzero"`
}

// Receipt is the record of a consumer that has handled a message, in this database.
type Receipt struct {
	Consumer string    `json:"consumer"`
	At       time.Time `json:"at"`
}
