package sqltext

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/internal/sleep"
)

// Querier is a database, a connection or a transaction.
type Querier interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
}

// Stmt is a statement that is put together. Values stand in the text for MySQL, whose driver would make three round trips of a
// statement with arguments; for PostgreSQL, whose driver remembers statements by their text, they are arguments.
type Stmt struct {
	on   Tables
	b    strings.Builder
	Args []any
}

// Stmt begins a statement. What it is given may name tables and clock as [Tables.In] does.
func (c Tables) Stmt(parts ...string) *Stmt {
	s := &Stmt{on: c}
	return s.SQL(parts...)
}

// SQL adds text to the statement.
func (s *Stmt) SQL(parts ...string) *Stmt {
	for _, p := range parts {
		s.b.WriteString(p)
	}
	return s
}

// Add adds what a function adds.
func (s *Stmt) Add(part func(*Stmt) *Stmt) *Stmt { return part(s) }

// Arg adds a value as an argument, in either dialect.
func (s *Stmt) Arg(value any) *Stmt {
	s.b.WriteByte('?')
	s.Args = append(s.Args, value)
	return s
}

// Number adds a number.
func (s *Stmt) Number(n int64) *Stmt {
	if s.on.Dialect == MySQL {
		return s.SQL(strconv.FormatInt(n, 10))
	}
	return s.Arg(n)
}

// Word adds a text that is compared with a column of bytes (in MySQL): the name of a feed, a row of our own tables.
func (s *Stmt) Word(text string) *Stmt {
	if s.on.Dialect == MySQL {
		return s.SQL("x'", hex.EncodeToString([]byte(text)), "'")
	}
	return s.Arg(text)
}

// WordLiteral writes a text of letters and digits as word does, where it cannot be an argument.
func (d Dialect) WordLiteral(text string) string {
	if d == MySQL {
		return "x'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + text + "'"
}

// Text adds a text that is compared with a column of text, in that column's collation.
func (s *Stmt) Text(text string) *Stmt {
	if s.on.Dialect == MySQL {
		return s.SQL(mysqlText(text))
	}
	return s.Arg(text)
}

// mysqlText writes a text as MySQL reads it whatever the session's settings for escapes are.
func mysqlText(text string) string { return "_utf8mb4 x'" + hex.EncodeToString([]byte(text)) + "'" }

// Numbers adds the condition that an integer column has one of the values.
func (s *Stmt) Numbers(column, kind string, list []int) *Stmt {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return s.OneOf(column, kind, texts, func(text string) string { return text })
}

// Words adds the condition that a column of bytes (in MySQL) has one of the values.
func (s *Stmt) Words(column string, list []string) *Stmt {
	return s.OneOf(column, "text", list, func(text string) string { return "x'" + hex.EncodeToString([]byte(text)) + "'" })
}

// OneOf adds the condition that a column has one of the values: as they are written for MySQL, or an array of PostgreSQL's type.
func (s *Stmt) OneOf(column, kind string, list []string, literal func(string) string) *Stmt {
	if s.on.Dialect == PostgreSQL {
		return s.SQL(column, " = ANY(CAST(").Arg(arrayOf(list)).SQL(" AS ", kind, "[]))")
	}
	if len(list) == 0 {
		return s.SQL("FALSE")
	}
	s.SQL(column, " IN (")
	for i, text := range list {
		if i > 0 {
			s.b.WriteByte(',')
		}
		s.b.WriteString(literal(text))
	}
	return s.SQL(")")
}

// At adds a time of our own tables.
func (s *Stmt) At(at time.Time) *Stmt {
	if s.on.Dialect == MySQL {
		return s.SQL("(TIMESTAMP('1970-01-01') + INTERVAL ", strconv.FormatInt(at.UnixMicro(), 10), " MICROSECOND)")
	}
	return s.SQL("(timestamptz 'epoch' + CAST(").Arg(at.UnixMicro()).SQL(" AS bigint) * interval '1 microsecond')")
}

// Time adds a time of our own tables in MySQL; zero is null.
func (s *Stmt) Time(t time.Time) *Stmt {
	if t.IsZero() {
		return s.SQL("NULL")
	}
	return s.SQL("(TIMESTAMP('1970-01-01') + INTERVAL ").Number(t.UnixMicro()).SQL(" MICROSECOND)")
}

// Later adds the time of our own tables that lies some time behind another.
func (s *Stmt) Later(than string, by time.Duration) *Stmt {
	if s.on.Dialect == MySQL {
		return s.SQL("(", than, " + INTERVAL ").Number(by.Microseconds()).SQL(" MICROSECOND)")
	}
	return s.SQL("(", than, " + CAST(").Arg(by.Microseconds()).SQL(" AS bigint) * interval '1 microsecond')")
}

// Exec runs a statement that returns no rows.
func (s *Stmt) Exec(ctx context.Context, q Querier) (sql.Result, error) {
	return q.ExecContext(ctx, s.on.In(s.b.String()), s.Args...)
}

func (s *Stmt) query(ctx context.Context, q Querier) (*sql.Rows, error) {
	return q.QueryContext(ctx, s.on.In(s.b.String()), s.Args...)
}

// Row runs a statement that returns at most one row.
func (s *Stmt) Row(ctx context.Context, q Querier) *sql.Row {
	return q.QueryRowContext(ctx, s.on.In(s.b.String()), s.Args...)
}

// Each runs the statement and calls f for each row.
func (s *Stmt) Each(ctx context.Context, q Querier, f func(scan func(...any) error) error) error {
	rows, err := s.query(ctx, q)
	if err != nil {
		return err
	}
	return EachRow(rows, f)
}

// EachRow calls f for each row of an answer, and closes it.
func EachRow(rows *sql.Rows, f func(scan func(...any) error) error) error {
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

// Attempts is how often a transaction is tried that others are in the way of.
const Attempts = 8

// Transact runs f in a transaction of its own, again if others were in the way.
func Transact(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	var err error
	for n := range Attempts {
		if n > 0 && !sleep.For(ctx, time.Duration(n*n)*time.Millisecond) {
			return ctx.Err()
		}
		if err = Once(ctx, db, f); !isCollision(err) {
			return err
		}
	}
	return fmt.Errorf("others were in the way %d times: %w", Attempts, err)
}

// Once runs f in one transaction, in which a statement sees what is committed when it begins, and locks no gaps.
func Once(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
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

// Moment is a time that was selected as microseconds; null is the zero time.
func Moment(micros sql.NullInt64) time.Time {
	if !micros.Valid {
		return time.Time{}
	}
	return time.UnixMicro(micros.Int64).UTC()
}
