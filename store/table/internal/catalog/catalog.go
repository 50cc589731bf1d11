package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Table is what a database says about a table.
type Table struct {
	Dialect sqltext.Dialect `json:"dialect"`
	Name    string          `json:"name"` // as it was asked for
	Columns []Column        `json:"columns"`
	// PrimaryKey are its columns; none if there is no primary key.
	PrimaryKey []string `json:"primary_key"`
	Indexes    []Index  `json:"indexes"`
	// Rows is how many there are, as the server guesses.
	Rows int64 `json:"rows"`
	// Partitioned tables of PostgreSQL cannot have an index made while they are written.
	Partitioned bool `json:"partitioned,omitempty"`
	// Words are the values of each column that looks like a status, found in some of the rows.
	Words map[string][]string `json:"words"`
}

// Column is a column of a [Table].
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // in the server's words, lower case
	Nullable bool   `json:"nullable"`
	Default  string `json:"default,omitempty"` // an expression
	// Counts reports that the server gives each row a larger number.
	Counts bool `json:"counts,omitempty"`
	// Touched columns change by themselves whenever their row is updated.
	Touched bool `json:"touched,omitempty"`
	// Generated columns cannot be written.
	Generated bool `json:"generated,omitempty"`
	// Allowed are all values that the column can have, where the server limits them.
	Allowed []string `json:"allowed,omitempty"`
}

// Index is an index of a [Table], in the order of its columns; one that is an expression is empty.
type Index struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Unique  bool     `json:"unique"`
	Where   string   `json:"where,omitempty"` // of a partial index
}

// ErrNoTable is returned by [Inspect] for a table that is not there.
var ErrNoTable = errors.New("there is no such table")

// sampled is how many rows are looked at for words of a status.
const sampled = 20_000

// Inspect looks at a table, which may be preceded by its schema and a dot. It reads the catalogue, and some rows for the words of a
// status.
func Inspect(ctx context.Context, db *sql.DB, d sqltext.Dialect, name string) (*Table, error) {
	t, err := Read(ctx, db, d, name)
	if err != nil {
		return nil, fmt.Errorf("table: table %q: %w", name, err)
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; err == nil && LooksLikeStatus(c) {
			t.Words[c.Name], err = t.sample(ctx, db, c.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("table: table %q: %w", name, err)
	}
	return t, nil
}

// Read reads what the catalogue says.
func Read(ctx context.Context, q sqltext.Querier, d sqltext.Dialect, name string) (*Table, error) {
	t := &Table{Dialect: d, Name: name, Words: make(map[string][]string)}
	var err error
	switch d {
	case sqltext.MySQL:
		err = t.readMySQL(ctx, q)
	case sqltext.PostgreSQL:
		err = t.readPostgres(ctx, q)
	default:
		err = fmt.Errorf("there is no dialect %q", d)
	}
	if err == nil && len(t.Columns) == 0 {
		err = ErrNoTable
	}
	return t, err
}

// Column returns the column with the name, or nil.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// Split divides the table's name.
func (t *Table) Split() (schema, name string) {
	schema, name, ok := strings.Cut(t.Name, ".")
	if !ok {
		return "", t.Name
	}
	return schema, name
}

// sample returns the values of a column in the first rows that the server comes across.
func (t *Table) sample(ctx context.Context, db sqltext.Querier, column string) ([]string, error) {
	d := t.Dialect
	words, err := list(ctx, db, fmt.Sprintf(`SELECT DISTINCT w FROM (SELECT %s AS w FROM %s LIMIT %d) s WHERE w IS NOT NULL ORDER BY w LIMIT 50`,
		d.Text(d.Quote(column)), d.QuoteTable(t.Name), sampled))
	return words, err
}

// addIndex adds a column to an index: they come one by one.
func (t *Table) addIndex(name, column, where string, unique bool) {
	if n := len(t.Indexes); n == 0 || t.Indexes[n-1].Name != name {
		t.Indexes = append(t.Indexes, Index{Name: name, Unique: unique, Where: where})
	}
	last := &t.Indexes[len(t.Indexes)-1]
	last.Columns = append(last.Columns, column)
}

var quotedText = regexp.MustCompile(`'((?:[^']|'')*)'`)

// Literals returns the texts in an expression.
func Literals(expression string) []string {
	var all []string
	for _, found := range quotedText.FindAllStringSubmatch(expression, -1) {
		if word := strings.ReplaceAll(found[1], "''", "'"); !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// allow limits a column to the texts of a constraint that has nothing but such a list.
func (t *Table) allow(column, constraint string) {
	if c := t.Column(column); c != nil && len(c.Allowed) == 0 {
		c.Allowed = Literals(constraint)
	}
}

// list returns the texts of a statement with one column.
func list(ctx context.Context, db sqltext.Querier, statement string, args ...any) ([]string, error) {
	var all []string
	err := each(ctx, db, statement, args, func(scan func(...any) error) error {
		var text string
		err := scan(&text)
		all = append(all, text)
		return err
	})
	return all, err
}

// each calls f for every row of an answer.
func each(ctx context.Context, db sqltext.Querier, statement string, args []any, f func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, statement, args...) //nolint:rowserrcheck // EachRow checks it
	if err != nil {
		return err
	}
	return sqltext.EachRow(rows, f)
}
