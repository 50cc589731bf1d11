package table

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/headers"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// record is a row of the table.
type record struct {
	postrider.Message
	rowID    string
	seq      int64 // its place in the order
	shard    int
	enqueued time.Time // when it was written
	bytes    int       // of its payload
	missing  bool      // the payload, which was too large to come with the row
}

// field is a column of the statement that reads messages, and where its value goes.
type field struct {
	expression string
	as         valueKind
	set        func(r *record, v *value)
}

type valueKind int

const (
	asText valueKind = iota
	asBytes
	asNumber
)

// value is what a column holds.
type value struct {
	text   sql.NullString
	bytes  []byte
	number sql.NullInt64
}

func (v *value) time() time.Time {
	if !v.number.Valid {
		return time.Time{}
	}
	return time.UnixMicro(v.number.Int64).UTC()
}

// load reads rows by their IDs. Those that are gone are missing from the answer.
func (t *table) load(ctx context.Context, q sqltext.Querier, ids []string) (map[string]record, error) {
	return t.loadIf(ctx, q, ids, "1 = 1")
}

// loadIf reads those of the rows that a condition is true of. The condition is selected: among those of WHERE it could make the
// server prefer another index to that of the IDs.
func (t *table) loadIf(ctx context.Context, q sqltext.Querier, ids []string, condition string) (map[string]record, error) {
	found := make(map[string]record, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	s := t.cfg.stmt("SELECT ", t.body, ", CASE WHEN ", condition, " THEN 1 ELSE 0 END FROM ", t.byID, " WHERE ").Add(idIn(t, ids))
	err := s.Each(ctx, q, func(scan func(...any) error) error {
		var ok bool
		r, err := t.scan(func(targets ...any) error { return scan(append(targets, &ok)...) })
		if ok {
			found[r.rowID] = r
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("messages of %s: %w", t.layout.Table, err)
	}
	return found, nil
}

// smallPayload is what a payload may always have to come with its row, whatever the budget.
const smallPayload = 1 << 10

// loadBrief is loadIf for messages that have to fit into a budget of bytes: payloads that could be too large together are missing
// from the records, which have their size. 0 means no limit.
func (t *table) loadBrief(ctx context.Context, q sqltext.Querier, ids []string, condition string, budget int) (map[string]record, error) {
	found := make(map[string]record, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	small := math.MaxInt32
	if budget > 0 {
		small = max(budget/len(ids), smallPayload)
	}
	last := len(t.fields) - 1 // the payload
	payload := t.fields[last].expression
	expressions := make([]string, last)
	for i := range expressions {
		expressions[i] = t.fields[i].expression
	}
	s := t.cfg.stmt("SELECT ", strings.Join(expressions, ", "), ", CASE WHEN octet_length(", payload, ") <= ", strconv.Itoa(small), " THEN ", payload,
		" END, coalesce(octet_length(", payload, "), 0), CASE WHEN ", condition, " THEN 1 ELSE 0 END FROM ", t.byID, " WHERE ").Add(idIn(t, ids))
	err := s.Each(ctx, q, func(scan func(...any) error) error {
		var ok bool
		var bytes int
		r, err := t.scan(func(targets ...any) error { return scan(append(targets, &bytes, &ok)...) })
		if r.bytes, r.missing = bytes, bytes > small; ok {
			found[r.rowID] = r
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("messages of %s: %w", t.layout.Table, err)
	}
	return found, nil
}

// complete reads the payloads that are missing. A row that is gone meanwhile goes from the records too.
func (t *table) complete(ctx context.Context, q sqltext.Querier, records map[string]record) error {
	var ids []string
	for id, r := range records {
		if r.missing {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := t.load(ctx, q, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if r, ok := found[id]; ok {
			records[id] = r
		} else {
			delete(records, id)
		}
	}
	return nil
}

// scan reads a row of which t.body was selected.
func (t *table) scan(scan func(...any) error) (record, error) {
	values := make([]value, len(t.fields))
	targets := make([]any, len(t.fields))
	for i := range values {
		switch t.fields[i].as {
		case asBytes:
			targets[i] = &values[i].bytes
		case asNumber:
			targets[i] = &values[i].number
		default:
			targets[i] = &values[i].text
		}
	}
	var r record
	if err := scan(targets...); err != nil {
		return r, err
	}
	r.SchemaVersion = 1
	for i := range values {
		t.fields[i].set(&r, &values[i])
	}
	if c := &t.layout.Columns; c.Type == c.RoutingKey && r.Type == "" { // a row without a routing key says by its topic what it is
		r.Type = r.Topic
	}
	r.Type, r.Topic = cmp.Or(r.Type, t.layout.DefaultType), cmp.Or(r.Topic, t.layout.DefaultTopic)
	r.ContentType = cmp.Or(r.ContentType, t.layout.DefaultContentType)
	if r.ID.IsZero() {
		r.ID = t.messageID(r.rowID)
	}
	if r.OccurredAt.IsZero() {
		r.OccurredAt = r.enqueued
	}
	r.WireID = t.wireID(r.rowID)
	return r, nil
}

// messageID is the ID of a message whose row names none.
func (t *table) messageID(rowID string) postrider.ID {
	if id, err := postrider.ParseID(rowID); err == nil {
		return id
	}
	return DerivedID(t.identity, t.layout.Table, rowID)
}

// DerivedID is the ID of a message whose row has no UUID. It is made from the database's [Identity], the table's name, as it is
// configured, and the row's ID: every computation gives the same. Without the identity, two services that each have an outbox with
// growing IDs would give their messages the same ones, and a broker or an inbox would take the second for a repetition.
func DerivedID(identity, table, rowID string) postrider.ID {
	var id postrider.ID
	sum := sha256.Sum256([]byte(identity + "/" + table + "/" + rowID))
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x80 // version 8: made by the application's own rule
	id[8] = id[8]&0x3f | 0x80
	return id
}

// bodyFields are the columns of a message.
func (t *table) bodyFields() []field {
	fields := []field{
		{t.rowID, asText, func(r *record, v *value) { r.rowID = v.text.String }},
		{t.seq, asNumber, func(r *record, v *value) { r.seq = v.number.Int64 }},
		{t.shard, asNumber, func(r *record, v *value) { r.shard = int(v.number.Int64) }},
	}
	text := func(column string, target func(*record) *string) {
		if column != "" {
			fields = append(fields, field{t.asText(column), asText, func(r *record, v *value) {
				if v.text.Valid {
					*target(r) = v.text.String
				}
			}})
		}
	}
	number := func(column string, target func(*record) *int) {
		if column != "" {
			fields = append(fields, field{t.quote(column), asNumber, func(r *record, v *value) {
				if v.number.Valid {
					*target(r) = int(v.number.Int64)
				}
			}})
		}
	}
	moment := func(column, expression string, target func(*record) *time.Time) {
		if column != "" {
			fields = append(fields, field{expression, asNumber, func(r *record, v *value) { *target(r) = v.time() }})
		}
	}
	c := &t.layout.Columns
	if c.MessageID != "" {
		fields = append(fields, field{t.asText(c.MessageID), asText, func(r *record, v *value) {
			r.ID, _ = postrider.ParseID(v.text.String) // what is none is derived
		}})
	}
	text(c.Type, func(r *record) *string { return &r.Type })
	text(c.AggregateType, func(r *record) *string { return &r.AggregateType })
	text(c.AggregateID, func(r *record) *string { return &r.AggregateID })
	text(c.Key, func(r *record) *string { return &r.Key })
	text(c.Topic, func(r *record) *string { return &r.Topic })
	text(c.RoutingKey, func(r *record) *string { return &r.RoutingKey })
	text(c.TenantID, func(r *record) *string { return &r.TenantID })
	text(c.ContentType, func(r *record) *string { return &r.ContentType })
	text(c.SchemaID, func(r *record) *string { return &r.SchemaID })
	text(c.DedupKey, func(r *record) *string { return &r.DedupKey })
	text(c.CorrelationID, func(r *record) *string { return &r.CorrelationID })
	text(c.CausationID, func(r *record) *string { return &r.CausationID })
	number(c.SchemaVersion, func(r *record) *int { return &r.SchemaVersion })
	number(c.Priority, func(r *record) *int { return &r.Priority })
	moment(c.CreatedAt, t.micros(c.CreatedAt), func(r *record) *time.Time { return &r.enqueued })
	moment(c.OccurredAt, t.micros(c.OccurredAt), func(r *record) *time.Time { return &r.OccurredAt })
	moment(c.DeliverAfter, t.notYet(c.DeliverAfter), func(r *record) *time.Time { return &r.DeliverAfter })
	if c.Headers != "" {
		fields = append(fields, field{t.asText(c.Headers), asBytes, func(r *record, v *value) { r.Headers = headersOf(v.bytes) }})
	}
	payload := t.quote(c.Payload)
	if kind := t.columns[c.Payload].kind; t.cfg.Dialect == sqltext.PostgreSQL && kind != "bytea" {
		payload = t.asText(c.Payload)
	}
	return append(fields, field{payload, asBytes, func(r *record, v *value) { r.Payload = v.bytes }})
}

// notYet is when a message is due. Where every row has such a time, or is given one, or it is that of the next attempt, it is nothing once the
// time has come: producers mean nothing by it, and a message with a time is in no order.
func (t *table) notYet(column string) string {
	if t.layout.native || column == "" || column != t.layout.State.NextAttempt && t.columns[column].nullable && t.catalog.Column(column).Default == "" {
		return t.micros(column)
	}
	return "CASE WHEN " + t.quote(column) + " > " + t.now() + " THEN " + t.micros(column) + " END"
}

func headersOf(text []byte) map[string]string {
	if string(text) == "null" {
		return nil
	}
	return headers.Parse(text)
}
