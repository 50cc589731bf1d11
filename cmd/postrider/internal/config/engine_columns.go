package config

// tableColumns lists what the columns of a table can hold: first those that producers write, then
// those that relays write.
var tableColumns = []struct{ key, doc string }{
	{"id", "Identifies the row: an integer, a UUID or text. Required."},
	{"message_id", "UUID of the message. Default: the id if that is a UUID, else made from it."},
	{"type", "Type of the message. Required, unless default has it."},
	{"aggregate_type", "Kind of thing that the message is about."},
	{"aggregate_id", "ID of the thing that the message is about. Messages of one thing are delivered in their order."},
	{"key", "Ordering key, where it is not that of the aggregate."},
	{"topic", "Topic."},
	{"routing_key", "Routing key."},
	{"tenant_id", "Tenant."},
	{"payload", "JSON, text or bytes. Required."},
	{"content_type", "Content type of the payload."},
	{"headers", "JSON object."},
	{"schema_version", "Version of the payload's schema."},
	{"schema_id", "Schema of the payload."},
	{"dedup_key", "Key that is the same for the same fact."},
	{"occurred_at", "When it happened. Default: created_at."},
	{"created_at", "When the row was written."},
	{"deliver_after", "Not to be delivered before this time."},
	{"priority", "Number; larger ones go first."},
	{"correlation_id", "Correlation ID."},
	{"causation_id", "ID of the message that caused this one."},
	{"status", "Status, in the words of status."},
	{"attempts", "How often it has failed."},
	{"next_attempt", "When it is tried again."},
	{"last_error", "Why it has failed."},
	{"claimed_at", "When a relay claimed it."},
	{"claimed_by", "Which relay claimed it."},
	{"published_at", "When it was delivered. Without a status: null means that it waits."},
	{"updated_at", "When the relay last wrote the row."},
}

// wordDocs documents the meanings of a status.
var wordDocs = map[string]string{
	"processing": "Word of rows that a relay has claimed. Default: rows are not marked.",
	"published":  "Word of rows that the destination has accepted.",
	"failed":     "Word of rows that have failed and are tried again. Default: the first of pending.",
	"dead":       "Word of rows that have failed for the last time. Default: that of failed.",
}
