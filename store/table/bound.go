package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postrider/postrider/store/table/internal/catalog"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// table is the table of messages: its layout, and what the database says about it.
type table struct {
	cfg    *Config
	layout *Layout
	shards int
	label  string // what the feed's entry calls it
	name   string // as it stands in statements, and so do these:
	byID   string // the name, where rows are found by their IDs
	id     string
	order  []string // that of delivery, with the table's name: PostgreSQL would prefer what is selected, such as the ID as text
	rowID  string   // the row's ID as text
	key    string   // the ordering key, null where there is none
	shard  string   // the shard
	seq    string   // the place in the order: a number
	wait   string   // the condition that a row waits to be delivered, or is claimed

	// Of a table that was adopted: the name, where rows that wait are found in their order, and the conditions under which its index has
	// them so.
	byWaiting string
	waits     []string

	ids      idKind
	catalog  *catalog.Table // what the database says about a table that was adopted
	identity string         // of the database
	columns  map[string]columnInfo
	fields   []field
	body     string // the columns of a message
}

// columnInfo is what the database says about a column.
type columnInfo struct {
	kind     string // the type, without its length
	length   int    // in characters or bytes; 0 if unbounded
	nullable bool
	unsigned bool // a large number, which may be beyond those with a sign
}

// idKind is how a row's ID is written.
type idKind int

const (
	idText idKind = iota
	idInteger
	idUUID
	idBytes // the sixteen bytes of a UUID
)

// bind looks at the table that the configuration names.
func bind(ctx context.Context, q sqltext.Querier, cfg *Config, shards int) (*table, error) {
	t := &table{cfg: cfg, layout: &cfg.Layout, shards: shards}
	t.name = cfg.Dialect.QuoteTable(cfg.Layout.Table)
	if cfg.Layout.native {
		t.name = cfg.own().Table("outbox")
	}
	if err := t.look(ctx, q); err != nil {
		return nil, err
	}
	var err error
	if t.identity, err = cfg.identity(ctx, q); err != nil {
		return nil, err
	}
	t.id = t.quote(t.layout.ID)
	if err := errors.Join(t.identify(), t.findIndex(ctx, q)); err != nil {
		return nil, err
	}
	for _, name := range t.layout.OrderBy {
		t.order = append(t.order, t.name+"."+t.quote(name))
	}
	if len(t.order) == 0 {
		t.order = []string{t.name + "." + t.id}
	}
	if err := t.express(); err != nil {
		return nil, err
	}
	if t.catalog != nil {
		t.findWaiting()
	}
	t.fields = t.bodyFields()
	expressions := make([]string, len(t.fields))
	for i, f := range t.fields {
		expressions[i] = f.expression
	}
	t.body = strings.Join(expressions, ", ")
	return t, nil
}

func (t *table) quote(column string) string { return t.cfg.Dialect.Quote(column) }

// look reads the columns, and compares them with the layout's.
func (t *table) look(ctx context.Context, q sqltext.Querier) error {
	schema, name, ok := strings.Cut(t.layout.Table, ".")
	if !ok {
		schema, name = "", t.layout.Table
	}
	if t.layout.native {
		schema = t.cfg.Schema
	}
	s := t.cfg.stmt()
	if t.cfg.Dialect == sqltext.MySQL {
		s.SQL(`SELECT table_schema = database(), table_schema, column_name, data_type, coalesce(character_maximum_length, 0),
			is_nullable = 'YES', column_type LIKE 'bigint%unsigned%' FROM information_schema.columns WHERE table_schema = `, sqltext.MySQL.Within(schema),
			" AND table_name = ").Text(name)
	} else {
		s.SQL(`SELECT CASE WHEN n.nspname = current_schema() THEN 1 ELSE 0 END, n.nspname, a.attname, t.typname,
			CASE WHEN t.typname IN ('varchar', 'bpchar') AND a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 0 END,
			CASE WHEN a.attnotnull THEN 0 ELSE 1 END, 0
			FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid
			JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE a.attrelid = to_regclass(`).Arg(t.name).SQL(`) AND a.attnum > 0 AND NOT a.attisdropped`)
	}
	t.columns = make(map[string]columnInfo)
	err := s.Each(ctx, q, func(scan func(...any) error) error {
		var own, length, nullable, unsigned int64
		var within, column, kind string
		if err := scan(&own, &within, &column, &kind, &length, &nullable, &unsigned); err != nil {
			return err
		}
		if t.label = within + "." + name; own == 1 {
			t.label = name
		}
		t.columns[column] = columnInfo{strings.ToLower(kind), int(length), nullable == 1, unsigned == 1}
		return nil
	})
	if err != nil {
		return fmt.Errorf("table: columns of %s: %w", t.layout.Table, err)
	}
	if len(t.columns) == 0 {
		return fmt.Errorf("table: there is no table %s, or it may not be read", t.layout.Table)
	}
	var errs []error
	names := slices.Clone(t.layout.OrderBy)
	for _, key := range ColumnKeys() {
		names = append(names, t.layout.Column(key))
	}
	for _, name := range names {
		if _, ok := t.columns[name]; name != "" && !ok {
			errs = append(errs, fmt.Errorf("table: table %s has no column %q", t.layout.Table, name))
		}
	}
	return errors.Join(errs...)
}

// findIndex has MySQL use the index of the IDs. In a small table it would rather look at all rows, and then wait for those that
// producers have not committed.
func (t *table) findIndex(ctx context.Context, q sqltext.Querier) (err error) {
	t.byID = t.name
	index := "PRIMARY"
	if !t.layout.native {
		if t.catalog, err = catalog.Read(ctx, q, t.cfg.Dialect, t.layout.Table); err != nil {
			return fmt.Errorf("table: table %s: %w", t.layout.Table, err)
		}
		if index = t.catalog.UniqueIndex(t.layout.ID); index == "" {
			index = t.catalog.Leads(t.layout.ID)
		}
	}
	if t.cfg.Dialect == sqltext.MySQL && index != "" {
		t.byID += " FORCE INDEX (" + t.quote(index) + ")"
	}
	return nil
}

var integers = []string{"tinyint", "smallint", "mediumint", "int", "bigint", "int2", "int4", "int8"}

// identify finds out how rows are identified.
func (t *table) identify() error {
	d := t.cfg.Dialect
	switch info := t.columns[t.layout.ID]; {
	case slices.Contains(integers, info.kind):
		t.ids, t.rowID = idInteger, d.Text(t.id)
	case info.kind == "uuid":
		t.ids, t.rowID = idUUID, d.Text(t.id)
	case info.kind == "binary" && info.length == 16:
		t.ids, t.rowID = idBytes, uuidOfBytes(t.id)
	case textual(info.kind):
		t.ids, t.rowID = idText, d.Text(t.id)
	default:
		return fmt.Errorf("table: the ID %q of table %s is of type %s: want an integer, a UUID or text", t.layout.ID, t.layout.Table,
			info.kind)
	}
	return nil
}

// uuidOfBytes writes the sixteen bytes of a MySQL column as a UUID.
func uuidOfBytes(column string) string {
	return "lower(insert(insert(insert(insert(hex(" + column + "), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-'))"
}

func textual(kind string) bool {
	return slices.Contains([]string{"char", "varchar", "text", "tinytext", "mediumtext", "longtext", "bpchar", "citext", "name"}, kind)
}

// rows adds the condition that a row's ID is one of a list.
func idIn(t *table, ids []string) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		kind := "text"
		switch {
		case t.ids == idInteger:
			kind = "bigint"
		case t.ids == idUUID:
			kind = "uuid"
		case t.ids == idText:
			kind = t.columns[t.layout.ID].kind // or the index would not be used
		}
		return s.OneOf(t.id, kind, ids, t.literal)
	}
}

// literal is a row's ID as it stands in a statement of MySQL.
func (t *table) literal(id string) string {
	switch t.ids {
	case idInteger:
		if strings.Trim(id, "-0123456789") != "" {
			return "NULL" // the database has made a text of the number: this is none of its
		}
		return id
	case idBytes:
		return "x'" + strings.ReplaceAll(id, "-", "") + "'"
	default:
		return "_utf8mb4 " + bytesLiteral(id)
	}
}
