package table

import "fmt"

// stateKeys are the columns that a relay writes.
var stateKeys = []string{
	"status", "attempts", "next_attempt", "last_error", "claimed_at", "claimed_by", "published_at", "updated_at",
}

// ColumnKeys are what columns are called where a layout is written down, such as in a configuration file.
func ColumnKeys() []string {
	return append([]string{
		"id", "message_id", "type", "aggregate_type", "aggregate_id", "key", "topic", "routing_key", "tenant_id", "payload", "content_type",
		"headers", "schema_version", "schema_id", "dedup_key", "occurred_at", "created_at", "deliver_after", "priority", "correlation_id",
		"causation_id",
	}, stateKeys...)
}

// Column returns the name of the column with a key; nothing if the table has none.
func (l *Layout) Column(key string) string {
	if field := l.field(key); field != nil {
		return *field
	}
	return ""
}

// SetColumn gives the column with a key a name. An empty name means that the table has no such column.
func (l *Layout) SetColumn(key, name string) error {
	field := l.field(key)
	if field == nil {
		return fmt.Errorf("table: a layout has no column %q: there are %q", key, ColumnKeys())
	}
	*field = name
	return nil
}

func (l *Layout) field(key string) *string {
	c, s := &l.Columns, &l.State
	return map[string]*string{
		"id": &l.ID, "message_id": &c.MessageID, "type": &c.Type, "aggregate_type": &c.AggregateType, "aggregate_id": &c.AggregateID,
		"key": &c.Key, "topic": &c.Topic, "routing_key": &c.RoutingKey, "tenant_id": &c.TenantID, "payload": &c.Payload,
		"content_type": &c.ContentType, "headers": &c.Headers, "schema_version": &c.SchemaVersion, "schema_id": &c.SchemaID,
		"dedup_key": &c.DedupKey, "occurred_at": &c.OccurredAt, "created_at": &c.CreatedAt, "deliver_after": &c.DeliverAfter,
		"priority": &c.Priority, "correlation_id": &c.CorrelationID, "causation_id": &c.CausationID,
		"status": &s.Status, "attempts": &s.Attempts, "next_attempt": &s.NextAttempt, "last_error": &s.LastError,
		"claimed_at": &s.ClaimedAt, "claimed_by": &s.ClaimedBy, "published_at": &s.PublishedAt, "updated_at": &s.UpdatedAt,
	}[key]
}
