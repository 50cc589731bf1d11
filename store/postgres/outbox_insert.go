package postgres

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// The statements that write messages. A message is a plain row, so that writing it costs the server what a plain row costs. Types
// are named, because in some modes drivers send every text as one.
const (
	written = `id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type, schema_version, schema_id,
		dedup_key, occurred_at, correlation_id, causation_id, headers, deliver_after, priority, payload`

	insertOne = `INSERT INTO @schema@.messages (` + written + `) VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $8, $9, $10::integer, $11,
		$12, $13::timestamptz, $14, $15, $16::jsonb, $17::timestamptz, $18::integer, $19::bytea)`

	// insertMany takes a list for each column, and all payloads in one piece.
	insertMany = `INSERT INTO @schema@.messages (` + written + `)
		SELECT m.id, m.type, m.aggregate_type, m.aggregate_id, m.key, m.topic, m.routing_key, m.tenant_id, m.content_type,
		  m.schema_version, m.schema_id, m.dedup_key, m.occurred_at, m.correlation_id, m.causation_id, m.headers, m.deliver_after,
		  m.priority, substr($21::bytea, m.start, m.size)
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
		  $10::integer[], $11::text[], $12::text[], $13::timestamptz[], $14::text[], $15::text[], $16::jsonb[], $17::timestamptz[],
		  $18::integer[], $19::integer[], $20::integer[]) AS m(id, type, aggregate_type, aggregate_id, key, topic, routing_key,
		  tenant_id, content_type, schema_version, schema_id, dedup_key, occurred_at, correlation_id, causation_id, headers,
		  deliver_after, priority, start, size)`

	// insertUnique leaves out what was enqueued before, and returns the dedup keys of the rest.
	insertUnique = `WITH fresh AS MATERIALIZED (SELECT f FROM @schema@.claim_keys($22::text[]) f), written AS (` + insertMany + `
		WHERE m.dedup_key IS NULL OR m.dedup_key IN (SELECT f FROM fresh)) SELECT f FROM fresh`

	lockKeys = `SELECT @schema@.lock_keys(VARIADIC $1::text[])`
)

// sending is a statement that has to be sent for messages.
type sending struct {
	sql     string
	args    []any
	returns bool // dedup keys that are new
}

// writing validates the messages and returns what writes them. Of those with the same dedup key, only the first is written.
func (e *enqueuer) writing(msgs []postrider.Message) (all []sending, err error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	if err := postrider.ValidateAll(msgs); err != nil {
		return nil, err
	}
	if e.lockKeys {
		var keys array
		for i := range msgs {
			if key := msgs[i].OrderKey(); key != "" {
				keys.string(key)
			}
		}
		if len(keys.text) > 0 {
			all = append(all, sending{sql: e.lock, args: []any{keys.String()}})
		}
	}
	if len(msgs) == 1 && msgs[0].DedupKey == "" {
		args, err := oneRow(&msgs[0])
		return append(all, sending{sql: e.one, args: args}), err
	}
	args, unique, err := manyRows(msgs)
	s := sending{sql: e.many, args: args}
	if len(unique.text) > 0 {
		s = sending{sql: e.unique, args: append(args, unique.String()), returns: true}
	}
	return append(all, s), err
}

// oneRow returns the arguments of insertOne. An empty text is none.
func oneRow(m *postrider.Message) ([]any, error) {
	headers, err := headerText(m)
	return []any{
		idText(m), m.Type, given(m.AggregateType), given(m.AggregateID), given(m.Key), given(m.Topic), given(m.RoutingKey), given(m.TenantID),
		given(m.ContentType), max(m.SchemaVersion, 1), given(m.SchemaID), given(m.DedupKey), given(timeText(m.OccurredAt)), given(m.CorrelationID),
		given(m.CausationID), given(headers), given(timeText(m.DeliverAfter)), number(m.Priority), orEmpty(m.Payload),
	}, err
}

// manyRows returns the arguments of insertMany, and the dedup keys.
func manyRows(msgs []postrider.Message) (args []any, unique array, err error) {
	var columns [20]array
	var payloads []byte
	size := 0
	for i := range msgs {
		size += len(msgs[i].Payload)
	}
	if size > 1<<30-1<<20 {
		return nil, unique, fmt.Errorf("postgres: %w: %d bytes of payload in one Enqueue; split it", postrider.ErrUnsupported, size)
	}
	payloads = make([]byte, 0, size)
	seen := make(map[string]bool)
	for i := range msgs {
		m := &msgs[i]
		if m.DedupKey != "" {
			if seen[m.DedupKey] {
				continue
			}
			seen[m.DedupKey] = true
			unique.string(m.DedupKey)
		}
		headers, err := headerText(m)
		if err != nil {
			return nil, unique, err
		}
		for j, text := range [...]string{
			idText(m), m.Type, m.AggregateType, m.AggregateID, m.Key, m.Topic, m.RoutingKey, m.TenantID, m.ContentType, "", m.SchemaID,
			m.DedupKey, timeText(m.OccurredAt), m.CorrelationID, m.CausationID, headers, timeText(m.DeliverAfter),
		} {
			if j != versionColumn {
				columns[j].string(text)
			}
		}
		columns[versionColumn].int(int64(max(m.SchemaVersion, 1)))
		columns[priorityColumn].int(int64(m.Priority))
		columns[startColumn].int(int64(len(payloads) + 1))
		columns[sizeColumn].int(int64(len(m.Payload)))
		payloads = append(payloads, m.Payload...)
	}
	args = make([]any, 0, len(columns)+2)
	for i := range columns {
		args = append(args, columns[i].String())
	}
	return append(args, payloads), unique, nil
}

// Those of insertMany's lists that have numbers.
const (
	versionColumn  = 9
	priorityColumn = 17
	startColumn    = 18
	sizeColumn     = 19
)

func idText(m *postrider.Message) string {
	if m.ID.IsZero() {
		return postrider.NewID().String()
	}
	return m.ID.String()
}

func headerText(m *postrider.Message) (string, error) {
	if len(m.Headers) == 0 {
		return "", nil
	}
	text, err := json.Marshal(m.Headers)
	return string(text), err
}

// timeText returns a time as every driver can send it, and as the server reads it whatever its settings.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
}

// given returns nil, which is NULL, for an empty text.
func given(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func number(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
