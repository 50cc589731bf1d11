package sqltext

import (
	"strconv"
	"strings"
)

// Dialect is the SQL that a server speaks.
type Dialect string

// The dialects. MySQL means MariaDB as well.
const (
	MySQL      Dialect = "mysql"
	PostgreSQL Dialect = "postgres"
)

// Quote returns an identifier as it stands in a statement.
func (d Dialect) Quote(name string) string {
	if d == MySQL {
		return "`" + strings.ReplaceAll(name, "`", "``") + "`"
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteTable quotes a table's name, which may be preceded by its schema and a dot.
func (d Dialect) QuoteTable(name string) string {
	schema, table, ok := strings.Cut(name, ".")
	if !ok {
		return d.Quote(name)
	}
	return d.Quote(schema) + "." + d.Quote(table)
}

// Literal returns a text as it stands in a statement. It has no type yet, so that it can be compared with an enum or a boolean.
func (d Dialect) Literal(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if d == MySQL {
		text = strings.ReplaceAll(text, `\`, `\\`)
	}
	return "'" + text + "'"
}

// Within is a schema that is named, or that of the session.
func (d Dialect) Within(schema string) string {
	switch {
	case d == MySQL && schema == "":
		return "database()"
	case d == MySQL:
		return mysqlText(schema)
	case schema == "":
		return "current_schema()"
	}
	return d.Literal(schema)
}

// bind turns question marks into what the server expects. Statements of this package have none inside of literals: texts that
// come from outside are arguments, and words of a layout must not hold any.
func (d Dialect) bind(statement string) string {
	if d == MySQL {
		return statement
	}
	var b strings.Builder
	n := 0
	for _, r := range statement {
		if r == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Now is the server's clock: in UTC where columns have no zone.
func (d Dialect) Now() string {
	if d == MySQL {
		return "UTC_TIMESTAMP(6)"
	}
	return "clock_timestamp()"
}

// Micros is a time of our own tables as microseconds since 1970, which every driver reads alike.
func (d Dialect) Micros(time string) string {
	if d == MySQL {
		return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " + time + ")"
	}
	return "CAST(extract(epoch FROM " + time + ") * 1000000 AS bigint)"
}

// Text is a value as text.
func (d Dialect) Text(expression string) string {
	if d == MySQL {
		return "CAST(" + expression + " AS CHAR)"
	}
	return "CAST(" + expression + " AS text)"
}
