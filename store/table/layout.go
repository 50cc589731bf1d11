package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// nativeShards is how many shards the table of our own has; its own column computes them.
const nativeShards = 8

// Layout says where a table has what: the names of its columns, and the words of its status. A column that the table does not
// have is left empty.
type Layout struct {
	// Table is the table's name, with its schema and a dot where it is not in the connection's own.
	Table string
	// ID identifies a row: an integer, a UUID or text. Required.
	ID string
	// OrderBy are the columns in whose order messages are delivered, such as created_at and id. Defaults to ID, where that is
	// an integer.
	OrderBy []string

	Columns Columns
	State   State

	// DefaultType is the type of messages in a table without a column for it, and of rows where that is empty.
	DefaultType string
	// DefaultTopic is the topic of messages in a table without a column for it, and of rows where that is empty.
	DefaultTopic string
	// DefaultContentType is that of payloads in a table without a column for it. Defaults to "application/json".
	DefaultContentType string
	// WireID is what the broker sees as the message's ID, with {id} for the row's ID and {database} for the first eight
	// characters of the database's [Identity], such as "outbox-{database}-{id}". Defaults to the message's own ID. With rows of several
	// tables or databases on one broker, each needs a form of its own.
	WireID string

	native bool // laid out by us: it has a shard column, and its times are in UTC
}

// Columns are those that the producer writes.
type Columns struct {
	MessageID     string // a UUID that identifies the message everywhere; without one, it is made from the row's ID
	Type          string
	AggregateType string
	AggregateID   string
	Key           string // the ordering key, where it is not that of the aggregate
	Topic         string
	RoutingKey    string
	TenantID      string
	Payload       string // required: JSON, text or bytes
	ContentType   string
	Headers       string // a JSON object, as JSON or text
	SchemaVersion string
	SchemaID      string
	DedupKey      string
	OccurredAt    string
	CreatedAt     string // when the row was written
	DeliverAfter  string
	Priority      string
	CorrelationID string
	CausationID   string
}

// State is how the table says what has become of a message. Without Status and PublishedAt, delivered rows are deleted.
type State struct {
	Status string // the column
	// Pending are the words of rows that wait to be delivered; the first is what such a row is given again.
	Pending []string
	// Processing is the word of rows that a relay has claimed. Empty: rows are not marked, the lease of their shard is the claim.
	Processing string
	// Published is the word of rows that the destination has accepted.
	Published string
	// Failed is the word of rows that have failed and will be tried again. Defaults to the first of Pending.
	Failed string
	// Dead is the word of rows that have failed for the last time. Defaults to Failed.
	Dead string

	Attempts    string // how often a message has failed
	NextAttempt string // when it will be tried again
	LastError   string
	ClaimedAt   string // when a relay claimed it
	ClaimedBy   string // which
	PublishedAt string // when it was delivered. Without Status: null means that it waits
	UpdatedAt   string

	// Delete removes rows once they are delivered.
	Delete bool
}

// Native is the layout of the table that [Migrator] creates.
func Native(prefix string) Layout {
	return Layout{
		native:  true,
		Table:   prefix + "outbox",
		ID:      "id",
		OrderBy: []string{"id"},
		Columns: Columns{
			MessageID: "message_id", Type: "type", AggregateType: "aggregate_type", AggregateID: "aggregate_id", Key: "order_key",
			Topic: "topic", RoutingKey: "routing_key", TenantID: "tenant_id", Payload: "payload", ContentType: "content_type",
			Headers: "headers", SchemaVersion: "schema_version", SchemaID: "schema_id", DedupKey: "dedup_key",
			OccurredAt: "occurred_at", CreatedAt: "created_at", DeliverAfter: "deliver_after", Priority: "priority",
			CorrelationID: "correlation_id", CausationID: "causation_id",
		},
		State: State{
			Status: "status", Pending: []string{"pending"}, Published: "published", Failed: "retry", Dead: "dead",
			Attempts: "attempts", NextAttempt: "available_at", LastError: "last_error", PublishedAt: "published_at",
		},
	}
}

// wireID is what the broker sees as the ID of a row's message; nothing where that is the message's own.
func (t *table) wireID(rowID string) string {
	return strings.NewReplacer(rowPlaceholder, rowID, databasePlaceholder, t.identity[:min(8, len(t.identity))]).Replace(t.layout.WireID)
}

const (
	rowPlaceholder      = "{id}"
	databasePlaceholder = "{database}"
)

// Validate reports all that is wrong with the layout itself; whether the table agrees is seen when it is opened.
func (l *Layout) Validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("table: layout of %q: "+format, append([]any{l.Table}, args...)...))
	}
	if l.Table == "" {
		fail("there is no Table")
	}
	if l.ID == "" {
		fail("there is no ID column")
	}
	if l.Columns.Payload == "" {
		fail("there is no Payload column")
	}
	if l.Columns.Type == "" && l.DefaultType == "" {
		fail("there is neither a Type column nor a DefaultType")
	}
	if l.WireID != "" && !strings.Contains(l.WireID, rowPlaceholder) {
		fail("the WireID %q lacks {id}: all messages would have the same", l.WireID)
	}
	for _, key := range ColumnKeys() {
		if strings.ContainsAny(l.Column(key), sqltext.NotInNames) {
			fail("the column %q has a character that is not allowed", l.Column(key))
		}
	}
	for _, column := range append([]string{l.Table}, l.OrderBy...) {
		if strings.ContainsAny(column, sqltext.NotInNames) {
			fail("the name %q has a character that is not allowed", column)
		}
	}
	l.State.validate(fail)
	l.written(fail)
	return errors.Join(errs...)
}

func (s *State) validate(fail func(format string, args ...any)) {
	if s.Status != "" && (len(s.Pending) == 0 || s.Published == "" && !s.Delete) {
		fail("Status is %q, but the words for Pending and Published are missing", s.Status)
	}
	if s.Status == "" && (len(s.Pending) > 0 || s.Processing != "" || s.Published != "" || s.Failed != "" || s.Dead != "") {
		fail("there are words of a status, but no Status column")
	}
	if s.Delete && s.Published != "" {
		fail("Delete and the word %q for Published contradict each other", s.Published)
	}
	if slices.Contains(s.Pending, "") {
		fail("a word for Pending is empty")
	}
	for _, word := range append(slices.Clone(s.Pending), s.Processing, s.Published, s.Failed, s.Dead) {
		if strings.ContainsAny(word, sqltext.NotInNames) {
			fail("the word %q has a character that is not allowed", word)
		}
	}
	if s.Published != "" {
		if slices.Contains(s.Pending, s.Published) {
			fail("the word %q means both Pending and Published", s.Published)
		}
		if s.Published == s.Processing || s.Published == s.Failed || s.Published == s.Dead {
			fail("the word %q means Published and something else", s.Published)
		}
	}
	if s.Processing != "" && (slices.Contains(s.Pending, s.Processing) || s.Processing == s.Failed || s.Processing == s.Dead) {
		fail("the word %q means Processing and something else", s.Processing)
	}
}

// written makes sure that what a relay writes has a column for itself.
func (l *Layout) written(fail func(format string, args ...any)) {
	for _, key := range stateKeys {
		column := l.Column(key)
		for _, other := range ColumnKeys() {
			// When a message may go first and when it is tried again can be the same column: the later time counts.
			both := key == "next_attempt" && other == "deliver_after"
			once := !slices.Contains(stateKeys, other) || other > key // two that are both written are reported once
			if column != "" && column == l.Column(other) && other != key && once && !both {
				fail("the column %q is both %s, which is written, and %s", column, key, other)
			}
		}
	}
}
