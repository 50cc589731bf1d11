package table

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// express puts together what statements say about a row.
func (t *table) express() error {
	t.key = t.orderKey()
	t.shard = t.shardOf()
	if t.layout.native {
		t.shard = "shard"
	}
	t.wait = t.waiting()
	first := t.layout.ID
	if len(t.layout.OrderBy) > 0 {
		first = t.layout.OrderBy[0]
	}
	t.seq = t.sequence(first)
	if t.seq == "" {
		return fmt.Errorf("table: table %s cannot be ordered by %q, which is of type %s: want OrderBy to begin with a number, a time, a UUID "+
			"or text", t.layout.Table, first, t.columns[first].kind)
	}
	return nil
}

// sequence is a number that grows with a column: of a UUID it is the first 60 bits, of a text its first seven bytes.
func (t *table) sequence(column string) string {
	name, mysql := t.quote(column), t.cfg.Dialect == sqltext.MySQL
	switch info := t.columns[column]; {
	case slices.Contains(integers, info.kind) && info.unsigned:
		return "CAST(least(" + name + ", 9000000000000000000) AS signed)" // larger ones stand behind that, each in the next place that is free
	case slices.Contains(integers, info.kind):
		return name
	case temporal(info.kind):
		return t.micros(column)
	case mysql && (info.kind == "uuid" || info.kind == "binary" && info.length == 16):
		return "CAST(conv(left(replace(" + t.asText(column) + ", '-', ''), 15), 16, 10) AS unsigned)"
	case info.kind == "uuid":
		return "CAST(CAST(('x' || left(replace(" + t.asText(column) + ", '-', ''), 15)) AS bit(60)) AS bigint)"
	case mysql && textual(info.kind):
		return "CAST(conv(rpad(left(hex(" + name + "), 14), 14, '0'), 16, 10) AS unsigned)"
	case textual(info.kind):
		return "CAST(CAST(('x' || rpad(left(encode(convert_to(" + t.asText(column) + ", 'UTF8'), 'hex'), 14), 14, '0')) AS bit(56)) AS bigint)"
	}
	return ""
}

// orderKey is what [postrider.Message.OrderKey] returns. Texts are measured, because to MySQL a space is equal to nothing.
func (t *table) orderKey() string {
	text := func(column string) string {
		if column == "" {
			return ""
		}
		return t.asText(column)
	}
	c := &t.layout.Columns
	key, kind, id := text(c.Key), text(c.AggregateType), text(c.AggregateID)
	var b strings.Builder
	b.WriteString("CASE")
	if key != "" {
		fmt.Fprintf(&b, " WHEN char_length(%s) > 0 THEN %[1]s", key)
	}
	switch {
	case kind != "" && id != "":
		fmt.Fprintf(&b, " WHEN char_length(%s) > 0 OR char_length(%s) > 0 THEN concat(coalesce(%[1]s, ''), '/', coalesce(%[2]s, ''))", kind, id)
	case kind != "":
		fmt.Fprintf(&b, " WHEN char_length(%s) > 0 THEN concat(%[1]s, '/')", kind)
	case id != "":
		fmt.Fprintf(&b, " WHEN char_length(%s) > 0 THEN concat('/', %[1]s)", id)
	case key == "":
		return "NULL"
	}
	return b.String() + " END"
}

// asText is a column's value as text.
func (t *table) asText(column string) string {
	info := t.columns[column]
	switch {
	case t.cfg.Dialect == sqltext.MySQL && info.kind == "binary" && info.length == 16:
		return uuidOfBytes(t.quote(column))
	case t.cfg.Dialect == sqltext.MySQL && textual(info.kind), info.kind == "text":
		return t.quote(column)
	}
	return t.cfg.Dialect.Text(t.quote(column))
}

// shardOf spreads rows by their key, and those without one by their ID.
func (t *table) shardOf() string {
	key := "coalesce(" + t.key + ", " + t.rowID + ")"
	if t.cfg.Dialect == sqltext.MySQL {
		return "mod(crc32(" + key + "), " + strconv.Itoa(t.shards) + ")"
	}
	return "CAST((hashtextextended((" + key + ") COLLATE \"C\", 0) & 9223372036854775807) % " + strconv.Itoa(t.shards) + " AS integer)"
}

// waiting is the condition that a row waits, or that a relay has claimed it.
func (t *table) waiting() string {
	s := &t.layout.State
	switch {
	case s.Status != "":
		_, words := t.layout.Waiting()
		return t.isOneOf(s.Status, words)
	case s.PublishedAt != "" && !s.Delete:
		return t.quote(s.PublishedAt) + " IS NULL"
	}
	return "1 = 1"
}

func (t *table) isOneOf(column string, words []string) string {
	if len(words) == 1 {
		return t.quote(column) + " = " + t.cfg.Dialect.Literal(words[0])
	}
	literals := make([]string, len(words))
	for i, word := range words {
		literals[i] = t.cfg.Dialect.Literal(word)
	}
	return t.quote(column) + " IN (" + strings.Join(literals, ", ") + ")"
}

func temporal(kind string) bool {
	return slices.Contains([]string{"datetime", "timestamp", "timestamptz", "date"}, kind)
}

// micros is a column's time as microseconds since 1970. Times without a zone are in that of the connection, or in UTC in a table
// of our own.
func (t *table) micros(column string) string {
	name := t.quote(column)
	switch {
	case t.cfg.Dialect == sqltext.PostgreSQL:
		return t.cfg.Dialect.Micros("CAST(" + name + " AS timestamptz)")
	case t.layout.native:
		return t.cfg.Dialect.Micros(name)
	}
	// Behind 2038 MariaDB has no answer: there the zone is taken to be as far from UTC as it is now.
	return "CASE WHEN " + name + " < '2038-01-18' THEN CAST(unix_timestamp(" + name + ") * 1000000 AS signed) ELSE " + t.cfg.Dialect.Micros(name) +
		" - timestampdiff(MICROSECOND, UTC_TIMESTAMP(6), now(6)) END"
}

// now is the server's clock as the table's own columns have it.
func (t *table) now() string {
	if t.cfg.Dialect == sqltext.MySQL && !t.layout.native {
		return "now(6)"
	}
	return t.cfg.Dialect.Now()
}
