package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/redact"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// listed is a message as one feed sees it, in the lists of "messages" and "dead".
type listed struct {
	ID        postrider.ID `json:"id"`
	Feed      string       `json:"feed"`
	Consumer  string       `json:"consumer,omitempty"` // the consumer that the feed belongs to
	Seq       int64        `json:"seq"`                // position in the log
	Shard     int          `json:"shard"`
	Status    feeds.Status `json:"status"`
	Name      string       `json:"name,omitempty"` // for a held message, the name that it waits for
	Type      string       `json:"type"`
	Topic     string       `json:"topic,omitempty"`
	Key       string       `json:"key,omitempty"` // the ordering key
	Tenant    string       `json:"tenant,omitempty"`
	Attempts  int          `json:"attempts"`
	Blocking  bool         `json:"blocking,omitempty"` // later messages of the key wait for it
	Error     string       `json:"error,omitempty"`
	Enqueued  time.Time    `json:"enqueued"`
	Deferred  time.Time    `json:"deferred,omitzero"`  // time of the deferral
	Tried     time.Time    `json:"tried,omitzero"`     // last attempt
	Available time.Time    `json:"available,omitzero"` // next attempt
	Job       int64        `json:"job,omitempty"`      // the replay that deferred it
	Bare      bool         `json:"bare,omitempty"`     // the store could not keep its content
	Excluded  bool         `json:"excluded,omitempty"` // an operator made the feed skip it
}

func listDeferred(d *feeds.Deferred) listed {
	return listed{
		d.ID, d.Feed, inbox.ConsumerOf(d.Feed), d.Seq, d.Shard, d.Status, d.Name, d.Type, d.Topic, d.OrderKey(), d.TenantID, d.Attempts, d.Blocking, d.LastError,
		d.EnqueuedAt, d.DeferredAt, d.TriedAt, d.AvailableAt, d.Job, d.Bare, false,
	}
}

func listLogged(e *admin.Logged) listed {
	return listed{
		ID: e.ID, Feed: e.Feed, Consumer: inbox.ConsumerOf(e.Feed), Seq: e.Seq, Shard: e.Shard, Status: e.Status, Type: e.Type, Topic: e.Topic, Key: e.OrderKey(),
		Tenant: e.TenantID, Attempts: e.Attempts, Error: e.LastError, Enqueued: e.EnqueuedAt, Available: e.AvailableAt,
	}
}

// content is the content of a message, for "show". Only one of the payload fields is set, depending
// on the content.
type content struct {
	AggregateType string            `json:"aggregate_type,omitempty"`
	AggregateID   string            `json:"aggregate_id,omitempty"`
	RoutingKey    string            `json:"routing_key,omitempty"`
	DedupKey      string            `json:"dedup_key,omitempty"`
	CorrelationID string            `json:"correlation_id,omitempty"`
	CausationID   string            `json:"causation_id,omitempty"`
	SchemaID      string            `json:"schema_id,omitempty"`
	SchemaVersion int               `json:"schema_version"`
	Priority      int               `json:"priority,omitempty"`
	Occurred      time.Time         `json:"occurred"`
	DeliverAfter  time.Time         `json:"deliver_after,omitzero"`
	ContentType   string            `json:"content_type,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Size          int               `json:"size"` // of the payload, in bytes
	Payload       json.RawMessage   `json:"payload,omitempty"`
	PayloadText   string            `json:"payload_text,omitempty"`
	PayloadBytes  []byte            `json:"payload_base64,omitempty"`
	Redacted      []string          `json:"redacted,omitempty"` // JSON paths of redacted values
}

func contentOf(m *postrider.Message, rules *redact.Rules) content {
	c := content{
		AggregateType: m.AggregateType, AggregateID: m.AggregateID, RoutingKey: m.RoutingKey, DedupKey: m.DedupKey,
		CorrelationID: m.CorrelationID, CausationID: m.CausationID, SchemaID: m.SchemaID, SchemaVersion: m.SchemaVersion,
		Priority: m.Priority, Occurred: m.OccurredAt, DeliverAfter: m.DeliverAfter, ContentType: m.ContentType,
	}
	c.put(m, rules)
	return c
}

// shown is a message with all details.
type shown struct {
	listed
	content
}

// show prints messages with all details.
func (a *app) show(all []shown) error {
	for i, m := range all {
		if i > 0 {
			if _, err := fmt.Fprintln(a.out); err != nil {
				return err
			}
		}
		if err := a.table(m.rows()); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.out, "\n%s\n", m.readable()); err != nil {
			return err
		}
	}
	return nil
}

func (m *shown) rows() [][]string {
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, cell(value, true)})
		}
	}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	add("id", m.ID.String())
	add("feed", m.Feed)
	add("status", string(m.Status))
	add("waits for", m.Name)
	if m.Excluded {
		add("excluded", "by an operator: the relays skip it")
	}
	if m.Bare {
		add("content", "missing: the store could not keep it; it is in the log")
	}
	if m.Blocking {
		add("blocks", "later messages of its key")
	}
	add("attempts", strconv.Itoa(m.Attempts))
	add("error", m.Error)
	add("type", m.Type)
	add("topic", m.Topic)
	add("routing key", m.RoutingKey)
	add("key", m.Key)
	add("aggregate", strings.Trim(m.AggregateType+"/"+m.AggregateID, "/"))
	add("tenant", m.Tenant)
	add("dedup key", m.DedupKey)
	add("correlation", m.CorrelationID)
	add("causation", m.CausationID)
	add("schema", m.SchemaID)
	add("schema version", number(int64(m.SchemaVersion)))
	add("priority", number(int64(m.Priority)))
	add("occurred", moment(m.Occurred))
	add("enqueued", moment(m.Enqueued))
	add("deliver after", moment(m.DeliverAfter))
	add("deferred", moment(m.Deferred))
	add("tried", moment(m.Tried))
	add("due", moment(m.Available))
	add("replay", number(m.Job))
	add("position", fmt.Sprintf("shard %d, number %d", m.Shard, m.Seq))
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		add("header", name+": "+m.Headers[name])
	}
	add("content type", m.ContentType)
	add("payload", phrase.Quantity(m.Size, "byte", "bytes"))
	if len(m.Redacted) > 0 {
		add("redacted", strings.Join(m.Redacted, ", ")+" (to see them, with an entry in the audit log: add --reveal)")
	}
	return rows
}

// readable returns the payload as text that is safe for a terminal.
func (m *shown) readable() string {
	text := m.PayloadText
	switch {
	case m.Payload != nil:
		var b bytes.Buffer
		_ = json.Indent(&b, m.Payload, "", "  ") // was validated
		text = b.String()
	case m.PayloadBytes != nil:
		return fmt.Sprintf("(not text; in base64: add --json)\n%q", m.PayloadBytes[:min(64, len(m.PayloadBytes))])
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, text)
}

// statusColour returns the colour of a status, by urgency.
func statusColour(status string) int {
	switch feeds.Status(status) {
	case feeds.StatusDead:
		return red
	case feeds.StatusRetry, feeds.StatusHeld, feeds.StatusWaiting, feeds.StatusParked:
		return yellow
	case feeds.StatusPublished:
		return green
	default:
		return plain
	}
}

// list prints messages as JSON or as a table.
func (a *app) list(all []listed, wide bool) error {
	if a.asJSON {
		return a.json(append([]listed{}, all...))
	}
	titles, rows := a.listedRows(all, wide, time.Now())
	return a.listing(titles, rows, "STATUS", statusColour)
}

func (a *app) listedRows(all []listed, wide bool, now time.Time) (titles []string, rows [][]string) {
	titles = []string{"ID", "AGE", "FEED", "STATUS", "TYPE", "KEY", "ATTEMPTS", "ERROR"}
	if wide {
		titles = []string{"ID", "AGE", "FEED", "STATUS", "TYPE", "KEY", "ATTEMPTS", "TOPIC", "TENANT", "SHARD", "SEQ", "ERROR"}
	}
	for i := range all {
		m := &all[i]
		row := []string{
			m.ID.String(), ago(m.Enqueued, now), a.cell(m.Feed, wide), string(m.Status), a.cell(m.Type, wide), a.cell(m.Key, wide),
			strconv.Itoa(m.Attempts),
		}
		if wide {
			row = append(row, a.cell(m.Topic, wide), a.cell(m.Tenant, wide), strconv.Itoa(m.Shard), strconv.FormatInt(m.Seq, 10))
		}
		rows = append(rows, append(row, a.cell(m.Error, wide)))
	}
	return titles, rows
}
