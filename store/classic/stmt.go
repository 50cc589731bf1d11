package classic

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// querier is a database, a connection or a transaction.
type querier interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
}

// stmt is a statement that is put together. Values stand in the text for MySQL, whose driver would make three round trips of a
// statement with arguments; for PostgreSQL, whose driver remembers statements by their text, they are arguments.
type stmt struct {
	cfg  *Config
	b    strings.Builder
	args []any
}

// stmt begins a statement. What it is given may name tables and clock as [Config.in] does.
func (c *Config) stmt(parts ...string) *stmt {
	s := &stmt{cfg: c}
	return s.sql(parts...)
}

func (s *stmt) sql(parts ...string) *stmt {
	for _, p := range parts {
		s.b.WriteString(p)
	}
	return s
}

// arg adds a value as an argument, in either dialect.
func (s *stmt) arg(value any) *stmt {
	s.b.WriteByte('?')
	s.args = append(s.args, value)
	return s
}

// number adds a number.
func (s *stmt) number(n int64) *stmt {
	if s.cfg.Dialect == MySQL {
		return s.sql(strconv.FormatInt(n, 10))
	}
	return s.arg(n)
}

// word adds a text that is compared with a column of bytes (in MySQL): the name of a feed, a row of our own tables.
func (s *stmt) word(text string) *stmt {
	if s.cfg.Dialect == MySQL {
		return s.sql("x'", hex.EncodeToString([]byte(text)), "'")
	}
	return s.arg(text)
}

// wordLiteral writes a text of letters and digits as word does, where it cannot be an argument.
func (d Dialect) wordLiteral(text string) string {
	if d == MySQL {
		return "x'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + text + "'"
}

// text adds a text that is compared with a column of text, in that column's collation.
func (s *stmt) text(text string) *stmt {
	if s.cfg.Dialect == MySQL {
		return s.sql(mysqlText(text))
	}
	return s.arg(text)
}

// mysqlText writes a text as MySQL reads it whatever the session's settings for escapes are.
func mysqlText(text string) string { return "_utf8mb4 x'" + hex.EncodeToString([]byte(text)) + "'" }

// numbers adds the condition that an integer column has one of the values.
func (s *stmt) numbers(column, kind string, list []int) *stmt {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return s.oneOf(column, kind, texts, func(text string) string { return text })
}

// words adds the condition that a column of bytes (in MySQL) has one of the values.
func (s *stmt) words(column string, list []string) *stmt {
	return s.oneOf(column, "text", list, func(text string) string { return "x'" + hex.EncodeToString([]byte(text)) + "'" })
}

// oneOf adds the condition that a column has one of the values: as they are written for MySQL, or an array of PostgreSQL's type.
func (s *stmt) oneOf(column, kind string, list []string, literal func(string) string) *stmt {
	if s.cfg.Dialect == PostgreSQL {
		return s.sql(column, " = ANY(CAST(").arg(arrayOf(list)).sql(" AS ", kind, "[]))")
	}
	if len(list) == 0 {
		return s.sql("FALSE")
	}
	s.sql(column, " IN (")
	for i, text := range list {
		if i > 0 {
			s.b.WriteByte(',')
		}
		s.b.WriteString(literal(text))
	}
	return s.sql(")")
}

// later adds the time of our own tables that lies some time behind another.
func (s *stmt) later(than string, by time.Duration) *stmt {
	if s.cfg.Dialect == MySQL {
		return s.sql("(", than, " + INTERVAL ").number(by.Microseconds()).sql(" MICROSECOND)")
	}
	return s.sql("(", than, " + CAST(").arg(by.Microseconds()).sql(" AS bigint) * interval '1 microsecond')")
}

func (s *stmt) exec(ctx context.Context, q querier) (sql.Result, error) {
	return q.ExecContext(ctx, s.cfg.in(s.b.String()), s.args...)
}

func (s *stmt) query(ctx context.Context, q querier) (*sql.Rows, error) {
	return q.QueryContext(ctx, s.cfg.in(s.b.String()), s.args...)
}

func (s *stmt) row(ctx context.Context, q querier) *sql.Row {
	return q.QueryRowContext(ctx, s.cfg.in(s.b.String()), s.args...)
}

// each runs the statement and calls f for each row.
func (s *stmt) each(ctx context.Context, q querier, f func(scan func(...any) error) error) error {
	rows, err := s.query(ctx, q)
	if err != nil {
		return err
	}
	return eachRow(rows, f)
}

// eachRow calls f for each row of an answer, and closes it.
func eachRow(rows *sql.Rows, f func(scan func(...any) error) error) error {
	defer rows.Close() //nolint:errcheck // Err says it
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// arrayOf writes texts as PostgreSQL reads an array.
func arrayOf(list []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, text := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		for j := range len(text) {
			if text[j] == '"' || text[j] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(text[j])
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// attempts is how often a transaction is tried that others are in the way of.
const attempts = 8

// do runs f in a transaction of its own, again if others were in the way.
func (s *feedStore) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	return transact(ctx, s.db, f)
}

func transact(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	var err error
	for n := range attempts {
		if n > 0 {
			pause := time.NewTimer(time.Duration(n*n) * time.Millisecond)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				return ctx.Err()
			}
		}
		if err = once(ctx, db, f); !isCollision(err) {
			return err
		}
	}
	return fmt.Errorf("others were in the way %d times: %w", attempts, err)
}

// once runs f in one transaction, in which a statement sees what is committed when it begins, and locks no gaps.
func once(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
