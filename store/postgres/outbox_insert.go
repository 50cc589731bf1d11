package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/enqueue"
)

// columns are the columns that producers write, besides the payload. Types are named because
// drivers send every text as one in some modes.
var columns = [...]struct{ name, of string }{
	{"id", "uuid"}, {"type", "text"}, {"aggregate_type", "text"}, {"aggregate_id", "text"}, {"key", "text"}, {"topic", "text"},
	{"routing_key", "text"}, {"tenant_id", "text"}, {"content_type", "text"}, {"schema_version", "integer"}, {"schema_id", "text"},
	{"dedup_key", "text"}, {"occurred_at", "timestamptz"}, {"correlation_id", "text"}, {"causation_id", "text"}, {"headers", "jsonb"},
	{"deliver_after", "timestamptz"}, {"priority", "integer"},
}

const (
	versionColumn = 9
	allColumns    = 1<<len(columns) - 1

	// maxShapes bounds how many statements an outbox uses, and so how many a connection keeps
	// prepared.
	maxShapes = 32

	lockKeys = `SELECT @schema@.lock_keys(VARIADIC $1::text[])`
)

// texts is a message as text, by column. An empty text is NULL, or the column's default if no
// message of the call sets the column.
type texts [len(columns)]string

func textsOf(m *postrider.Message) (r texts, err error) {
	headers, priority := "", ""
	if len(m.Headers) > 0 {
		text, err := json.Marshal(m.Headers)
		if err != nil {
			return r, err
		}
		headers = string(text)
	}
	if m.Priority != 0 {
		priority = strconv.Itoa(m.Priority)
	}
	id := m.ID
	if id.IsZero() {
		id = postrider.NewID()
	}
	return texts{
		id.String(), m.Type, m.AggregateType, m.AggregateID, m.Key, m.Topic, m.RoutingKey, m.TenantID, m.ContentType,
		strconv.Itoa(max(m.SchemaVersion, 1)), m.SchemaID, m.DedupKey, timeText(m.OccurredAt), m.CorrelationID, m.CausationID, headers,
		timeText(m.DeliverAfter), priority,
	}, nil
}

// uses has a bit for each column that the message needs.
func (r *texts) uses() (mask int) {
	for i, text := range r {
		if text != "" && (i != versionColumn || text != "1") {
			mask |= 1 << i
		}
	}
	return mask
}

// shape describes a statement that writes messages. A message is a plain row, which is the cheapest
// thing for the server to write. Columns that no message of a call sets are left out, because a
// NULL parameter costs client and server nearly as much as a value.
type shape struct {
	columns int  // a bit for each
	many    bool // the statement takes a list for each column, and all payloads as one value
	unique  bool // the statement skips what was enqueued before, and returns the new dedup keys
}

// statement returns the SQL text, with @schema@ in place of the schema.
func (s shape) statement() string {
	var names, params, lists []string
	for i, c := range columns {
		if s.columns&(1<<i) != 0 {
			names = append(names, c.name)
			params = append(params, fmt.Sprintf("$%d::%s", len(names), c.of))
			lists = append(lists, fmt.Sprintf("$%d::%s[]", len(names), c.of))
		}
	}
	n := len(names)
	list := strings.Join(names, ", ")
	into := "INSERT INTO @schema@.messages (" + list + ", payload) "
	if !s.many {
		return into + fmt.Sprintf("VALUES (%s, $%d::bytea)", strings.Join(params, ", "), n+1)
	}
	insert := into + fmt.Sprintf("SELECT m.%s, substr($%d::bytea, m.start, m.size) FROM unnest(%s, $%d::integer[], $%d::integer[]) AS m(%s, start, size)",
		strings.Join(names, ", m."), n+3, strings.Join(lists, ", "), n+1, n+2, list)
	if !s.unique {
		return insert
	}
	return fmt.Sprintf("WITH fresh AS MATERIALIZED (SELECT f FROM @schema@.claim_keys($%d::text[]) f), written AS (%s "+
		"WHERE m.dedup_key IS NULL OR m.dedup_key IN (SELECT f FROM fresh)) SELECT f FROM fresh", n+4, insert)
}

// shapes caches the statements in use. Programs use few: each place that enqueues sets the same
// columns each time.
type shapes struct {
	cfg   Config
	mu    sync.RWMutex
	known map[shape]string
}

// find returns the statement for s, or the one for all columns if there are too many statements.
func (k *shapes) find(s shape) (shape, string) {
	k.mu.RLock()
	text, ok := k.known[s]
	k.mu.RUnlock()
	if ok {
		return s, text
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxShapes {
		s.columns = allColumns
	}
	if _, ok := k.known[s]; !ok {
		k.known[s] = k.cfg.in(s.statement())
	}
	return s, k.known[s]
}

// sending is a statement to send, with its arguments.
type sending struct {
	sql     string
	args    []any
	returns bool // it returns the new dedup keys
}

// writing validates the messages and returns the statements that write them. Of messages with the
// same dedup key, it writes only the first.
func (e *enqueuer) writing(msgs []postrider.Message) (all []sending, err error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	if err := enqueue.Validate(msgs); err != nil {
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
	write, err := e.insert(msgs)
	return append(all, write), err
}

// insert returns the statement that writes messages.
func (e *enqueuer) insert(msgs []postrider.Message) (sending, error) {
	if len(msgs) == 1 && msgs[0].DedupKey == "" {
		r, err := textsOf(&msgs[0])
		s, sql := e.shapes.find(shape{columns: r.uses()})
		args := make([]any, 0, len(columns)+1)
		for i, text := range r {
			if s.columns&(1<<i) != 0 {
				args = append(args, given(text))
			}
		}
		return sending{sql: sql, args: append(args, orEmpty(msgs[0].Payload))}, err
	}
	size := 0
	for i := range msgs {
		size += len(msgs[i].Payload)
	}
	if size > 1<<30-1<<20 {
		return sending{}, fmt.Errorf("postgres: %w: %d bytes of payload in one Enqueue; split it", postrider.ErrUnsupported, size)
	}
	rows := make([]texts, 0, len(msgs))
	payloads := make([]byte, 0, size)
	want := shape{many: true}
	var starts, sizes, unique array
	seen := make(map[string]bool)
	for i := range msgs {
		m := &msgs[i]
		if m.DedupKey != "" {
			if seen[m.DedupKey] {
				continue
			}
			seen[m.DedupKey] = true
			unique.string(m.DedupKey)
			want.unique = true
		}
		r, err := textsOf(m)
		if err != nil {
			return sending{}, err
		}
		rows = append(rows, r)
		want.columns |= r.uses()
		starts.int(int64(len(payloads) + 1))
		sizes.int(int64(len(m.Payload)))
		payloads = append(payloads, m.Payload...)
	}
	s, sql := e.shapes.find(want)
	args := make([]any, 0, len(columns)+4)
	for i := range columns {
		if s.columns&(1<<i) == 0 {
			continue
		}
		var list array
		for j := range rows {
			list.string(rows[j][i])
		}
		args = append(args, list.String())
	}
	args = append(args, starts.String(), sizes.String(), payloads)
	if want.unique {
		args = append(args, unique.String())
	}
	return sending{sql: sql, args: args, returns: want.unique}, nil
}

// timeText formats a time so that every driver can send it and the server reads it the same way
// whatever its settings.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
}

// given returns nil, that is NULL, for an empty text.
func given(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
