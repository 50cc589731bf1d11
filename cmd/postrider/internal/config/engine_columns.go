package config

// tableColumns lists what the columns of a table can hold: first those that producers write, then
// those that relays write.
var tableColumns = []struct{ key, doc string }{
	{"id", "Identifies the row: an integer, a UUID or text. Required."},
	{"message_id", "UUID of the message. Default: the id if that is a UUID, else derived from it."},
	{"type", "Type of the message. Required, unless default has it."},
	{"aggregate_type", "Type of the aggregate that the message is about."},
	{"aggregate_id", "ID of the aggregate that the message is about. Messages of one aggregate are delivered in order."},
	{"key", "Ordering key, if it is not the aggregate."},
	{"topic", "Topic."},
	{"routing_key", "Routing key."},
	{"tenant_id", "Tenant."},
	{"payload", "JSON, text or bytes. Required."},
	{"content_type", "Content type of the payload."},
	{"headers", "JSON object."},
	{"schema_version", "Version of the payload's schema."},
	{"schema_id", "Schema of the payload."},
	{"dedup_key", "Natural key of the fact."},
	{"occurred_at", "Time of the event. Default: created_at."},
	{"created_at", "Time at which the row was written."},
	{"deliver_after", "Earliest time of delivery."},
	{"priority", "Number; larger ones go first."},
	{"correlation_id", "Correlation ID."},
	{"causation_id", "ID of the message that caused this one."},
	{"status", "Status, with the values of the section status."},
	{"attempts", "Number of failed attempts."},
	{"next_attempt", "Time of the next attempt."},
	{"last_error", "Last error."},
	{"claimed_at", "Time at which a relay claimed the row."},
	{"claimed_by", "Relay that has claimed the row."},
	{"published_at", "Time of delivery. Without a status column, null means pending."},
	{"updated_at", "Time of the relay's last change."},
}

// wordDocs documents the meanings of a status.
var wordDocs = map[string]string{
	"processing": "Value for rows that a relay has claimed. Default: rows are not marked.",
	"published":  "Value for rows that the destination has accepted.",
	"failed":     "Value for rows that have failed and are retried. Default: the first of pending.",
	"dead":       "Value for rows that have used up their attempts. Default: that of failed.",
}
