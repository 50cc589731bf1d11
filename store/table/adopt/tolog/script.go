package tolog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

func derived(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return hex.EncodeToString(sum[:8])
}

// column is a column of the row that was written.
func column(name string) string { return "NEW." + quote(name) }

// text is the value of a column as text; null where the table has none, or it is empty.
func (t *source) text(name string) string {
	if name == "" {
		return "NULL"
	}
	return "nullif(" + column(name) + "::text, '')"
}

// or is an expression with something to fall back on.
func or(expression, fallback string) string {
	switch {
	case expression == "NULL":
		return literal(fallback)
	case fallback == "":
		return expression
	}
	return "coalesce(" + expression + ", " + literal(fallback) + ")"
}

// id is the message's ID, as the classic engine makes it.
func (t *source) id() string {
	var choices []string
	for _, name := range []string{t.Columns.MessageID, t.ID} {
		switch kind := t.types[name]; {
		case name == "" || isNumber(kind):
		case kind == "uuid":
			choices = append(choices, column(name))
		default:
			choices = append(choices, "CASE WHEN "+t.text(name)+` ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN (`+
				t.text(name)+")::uuid END")
		}
	}
	if t.types[t.ID] != "uuid" {
		choices = append(choices, t.derivedID())
	}
	return "coalesce(" + strings.Join(choices, ",\n        ") + ")"
}

// derivedID is a UUID of version 8, made of the database's identity, the table's name and the row's ID.
func (t *source) derivedID() string {
	return `(SELECT encode(set_byte(set_byte(h, 6, get_byte(h, 6) & 15 | 128), 8, get_byte(h, 8) & 63 | 128), 'hex')::uuid
       FROM (SELECT substr(sha256(convert_to(` + literal(t.identity+"/"+t.Table+"/") + ` || ` + column(t.ID) + `::text, 'UTF8')), 1, 16) AS h) d)`
}

// key is the ordering key where it is not made of both parts of the aggregate.
func (t *source) key() string {
	kind, id := t.text(t.Columns.AggregateType), t.text(t.Columns.AggregateID)
	half := "NULL"
	if kind != "NULL" || id != "NULL" {
		half = "CASE WHEN (" + kind + " IS NULL) <> (" + id + " IS NULL) THEN concat(" + kind + ", '/', " + id + ") END"
	}
	if t.Columns.Key == "" {
		return half
	}
	return "coalesce(" + t.text(t.Columns.Key) + ", " + half + ")"
}

func (t *source) payload() string {
	if t.types[t.Columns.Payload] == "bytea" {
		return "coalesce(" + column(t.Columns.Payload) + ", '')"
	}
	return "convert_to(coalesce(" + column(t.Columns.Payload) + "::text, ''), 'UTF8')"
}

// headers are a variable of the function: a text that is not JSON must not make the writer's transaction fail.
func (t *source) headers() string {
	if t.Columns.Headers == "" {
		return "NULL"
	}
	return "headers"
}

// readHeaders returns how the function comes to that variable. What is no JSON object is a header itself, as the classic engine has it.
func (t *source) readHeaders() (declare, statement string) {
	name := t.Columns.Headers
	if name == "" {
		return "", ""
	}
	declare = "DECLARE\n  headers jsonb;\n"
	statement = "headers := nullif(" + column(name) + "::jsonb, 'null');\n  "
	if t.types[name] != "jsonb" { // json may hold what jsonb does not
		statement = "BEGIN\n    headers := nullif(" + t.text(name) + "::jsonb, 'null');\n  EXCEPTION WHEN data_exception THEN\n" +
			"    headers := jsonb_build_object('headers', " + t.text(name) + ");\n  END;\n  "
	}
	return declare, statement + "IF jsonb_typeof(headers) <> 'object' THEN\n    headers := jsonb_build_object('headers', headers::text);\n  END IF;\n  "
}

// deliverAfter is a time that has not come yet: what is due need not be deferred.
func (t *source) deliverAfter() string {
	if t.Columns.DeliverAfter == "" {
		return "NULL"
	}
	at := t.cast(t.Columns.DeliverAfter, "timestamptz")
	return "CASE WHEN " + at + " > clock_timestamp() THEN " + at + " END"
}

// occurredAt is when it happened, or else was written. Infinity is no time.
func (t *source) occurredAt() string {
	name := cmp.Or(t.Columns.OccurredAt, t.Columns.CreatedAt)
	if name == "" {
		return "NULL"
	}
	at := t.cast(name, "timestamptz")
	return "CASE WHEN isfinite(" + at + ") THEN " + at + " END"
}

func (t *source) cast(name, kind string) string {
	if name == "" {
		return "NULL"
	}
	if kind == "integer" && t.types[name] == "bigint" {
		return "greatest(least(" + column(name) + ", 2147483647), -2147483648)::integer"
	}
	return column(name) + "::" + kind
}

// copied are the columns of the log, and what is written there.
func (t *source) copied() [][2]string {
	c := &t.Columns
	kind := t.text(c.Type)
	if c.Type == c.RoutingKey && c.Type != "" && c.Topic != "" { // as the engine reads it
		kind = "coalesce(" + kind + ", " + t.text(c.Topic) + ")"
	}
	all := [][2]string{
		{"id", t.id()},
		{"type", or(kind, cmp.Or(t.DefaultType, "-"))},
		{"aggregate_type", t.text(c.AggregateType)},
		{"aggregate_id", t.text(c.AggregateID)},
		{"key", t.key()},
		{"topic", or(t.text(c.Topic), t.DefaultTopic)},
		{"routing_key", t.text(c.RoutingKey)},
		{"tenant_id", t.text(c.TenantID)},
		{"content_type", or(t.text(c.ContentType), cmp.Or(t.DefaultContentType, "application/json"))},
		{"schema_version", "greatest(coalesce(" + t.cast(c.SchemaVersion, "integer") + ", 1), 0)"},
		{"schema_id", t.text(c.SchemaID)},
		{"dedup_key", t.text(c.DedupKey)},
		{"occurred_at", t.occurredAt()},
		{"correlation_id", t.text(c.CorrelationID)},
		{"causation_id", t.text(c.CausationID)},
		{"headers", t.headers()},
		{"payload", t.payload()},
		{"deliver_after", t.deliverAfter()},
		{"priority", t.cast(c.Priority, "integer")},
	}
	kept := all[:0]
	for _, one := range all {
		if one[1] != "NULL" && one[1] != "''" && one[1] != "greatest(coalesce(NULL, 1), 0)" {
			kept = append(kept, one)
		}
	}
	return kept
}
