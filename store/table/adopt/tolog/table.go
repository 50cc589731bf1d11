package tolog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
)

// source is the table as the server knows it.
type source struct {
	table.Layout
	schema, name string
	label        string            // what the classic engine calls it
	types        map[string]string // of its columns
	log          string            // the log's schema, quoted
	identity     string            // of the database
}

// inspect finds the table and its columns.
func (m *Move) inspect(ctx context.Context) (*source, error) {
	t := &source{Layout: m.cfg.Classic.Layout, types: make(map[string]string), log: quote(m.cfg.Log.Schema)}
	var oid uint32
	err := m.pool.QueryRow(ctx, `SELECT c.oid, n.nspname, c.relname,
		CASE WHEN n.nspname = current_schema() THEN '' ELSE n.nspname || '.' END || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = to_regclass($1)`, pgx.QueryExecModeExec, quote(strings.SplitN(t.Table, ".", 2)...)).
		Scan(&oid, &t.schema, &t.name, &t.label)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("tolog: there is no table %s", t.Table)
	}
	if err != nil {
		return nil, fmt.Errorf("tolog: table %s: %w", t.Table, err)
	}
	rows, err := m.pool.Query(ctx, `SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a
		WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped`, pgx.QueryExecModeExec, oid)
	if err != nil {
		return nil, fmt.Errorf("tolog: columns of %s: %w", t.Table, err)
	}
	var column, kind string
	if _, err := pgx.ForEachRow(rows, []any{&column, &kind}, func() error {
		t.types[column] = kind
		return nil
	}); err != nil {
		return nil, fmt.Errorf("tolog: columns of %s: %w", t.Table, err)
	}
	if err := m.pool.QueryRow(ctx, `SELECT id FROM `+m.own("identity"), pgx.QueryExecModeExec).Scan(&t.identity); err != nil {
		return nil, fmt.Errorf("tolog: identity of the database: %w", explain(err))
	}
	db := stdlib.OpenDBFromPool(m.pool)
	defer db.Close()      //nolint:errcheck // the pool keeps the connections
	db.SetMaxIdleConns(0) // and gets them back at once
	found, err := adopt.Inspect(ctx, db, table.PostgreSQL, t.Table)
	if err != nil {
		return nil, fmt.Errorf("tolog: %w", err)
	}
	return t, errors.Join(t.check(), t.Layout.Check(found))
}

// check reports columns that are missing, or that would make a writer's transaction fail: the copy must never be the reason for that.
func (t *source) check() error {
	var errs []error
	want := map[string]func(string) bool{
		"schema_version": isNumber, "priority": isNumber, "occurred_at": isTime, "created_at": isTime, "deliver_after": isTime,
	}
	for _, key := range table.ColumnKeys() {
		column := t.Column(key)
		kind := t.types[column]
		switch fits := want[key]; {
		case column == "":
		case kind == "":
			errs = append(errs, fmt.Errorf("tolog: table %s has no column %q, which the layout names for %s", t.Table, column, key))
		case fits != nil && !fits(kind):
			errs = append(errs, fmt.Errorf("tolog: column %q of table %s, for %s, is of type %s, which cannot be copied; leave it out of the layout",
				column, t.Table, key, kind))
		}
	}
	return errors.Join(errs...)
}

func isNumber(kind string) bool { return kind == "bigint" || kind == "integer" || kind == "smallint" }

func isTime(kind string) bool { return strings.HasPrefix(kind, "timestamp") || kind == "date" }

func (t *source) full() string { return quote(t.schema, t.name) }

// trigger is the name of the trigger; its function, and the sequence that says when it was last used, stand beside the table.
const trigger = "postrider_to_log"

func (t *source) beside() string {
	name := trigger + "_" + t.name
	if len(name) > 63 { // the server would cut it, to what may be another table's
		name = fmt.Sprintf("%s_%s", trigger, derived(t.schema, t.name))
	}
	return quote(t.schema, name)
}

// waits is the condition that a row, whose columns a prefix names, is to be delivered.
func (t *source) waits(prefix string) string {
	s := &t.State
	switch {
	case s.Status != "":
		return prefix + quote(s.Status) + " IN (" + literals(s.Pending) + ")"
	case s.PublishedAt != "" && !s.Delete:
		return prefix + quote(s.PublishedAt) + " IS NULL"
	}
	return "true"
}

// over is the condition that a row is at its end, delivered or given up. It is empty where such rows are deleted.
func (t *source) over(prefix string) string {
	s := &t.State
	switch {
	case s.Status != "" && s.Published+s.Dead != "":
		words := slices.DeleteFunc([]string{s.Published, s.Dead}, func(word string) bool {
			return word == "" || word == s.Failed || slices.Contains(s.Pending, word) // relays use those for rows that they try again
		})
		if len(words) == 0 {
			return ""
		}
		return prefix + quote(s.Status) + " IN (" + literals(words) + ")"
	case s.Status == "" && s.PublishedAt != "" && !s.Delete:
		return prefix + quote(s.PublishedAt) + " IS NOT NULL"
	}
	return ""
}

func literals(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = literal(word)
	}
	return strings.Join(quoted, ", ")
}

func literal(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if strings.Contains(text, `\`) {
		return " E'" + strings.ReplaceAll(text, `\`, `\\`) + "'"
	}
	return "'" + text + "'"
}
