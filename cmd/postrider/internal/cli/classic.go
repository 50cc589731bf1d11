package cli

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/mysql"
)

// isClassic reports whether the database uses the classic engine.
func (d *database) isClassic() bool {
	return d.engine == config.EngineClassic || d.engine == "" && d.isMySQL()
}

func (d *database) isMySQL() bool { return mysql.IsURL(d.address()) }

// described names the schema or table of the messages, for people.
func (d *database) described() string {
	if !d.isClassic() {
		return "schema " + d.schema
	}
	l, err := layoutOf(d.table)
	if err != nil || l.Table == "" {
		return "outbox of the classic engine"
	}
	return "table " + l.Table
}

// needsLog returns an error with the classic engine.
func (d *database) needsLog() error {
	if !d.isClassic() {
		return nil
	}
	return hintedError{usagef("this needs the log, which the classic engine does not have"),
		"what works with a table: postrider adopt, migrate, relay, enqueue, status, dead, keys, feeds, messages, audit, top, console"}
}

// fileDatabase converts a database of a configuration file.
func fileDatabase(name string, d config.Database) *database {
	db := &database{name: name, dsn: d.URL, schema: d.Schema, engine: d.EngineName(), table: d.Table, most: int64(d.MaxLogSize), home: d.Home}
	if db.schema == "" && db.engine == config.EngineLog {
		db.schema = "postrider"
	}
	return db
}

// check validates the address without connecting.
func (d *database) check() error {
	if d.isMySQL() {
		_, err := mysql.ParseURL(d.dsn)
		return err
	}
	_, err := pgconn.ParseConfig(d.dsn)
	return err
}

// checkTable returns the engine's errors about the table and a feed's filter.
func (d *database) checkTable(only route.Match) []string {
	if !d.isClassic() {
		return nil
	}
	cfg, err := d.classicStore()
	if cfg.Only = only; err == nil {
		err = cfg.Validate()
	}
	if err == nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(err.Error(), "table: ", ""), "\n")
}

// schemaName returns the schema of postrider's objects. With the classic engine that is the
// connection's default, unless the user sets --schema.
func (d *database) schemaName() string {
	if d.isClassic() && d.flags != nil && !d.flags.Changed("schema") {
		return "" // the flag's default is for the log
	}
	return d.schema
}

// classicStore returns the configuration of the classic engine.
func (d *database) classicStore() (table.Config, error) {
	cfg := table.Config{Dialect: table.PostgreSQL, Schema: d.schemaName(), Shards: d.table.Shards, Retention: d.table.Retention,
		CommandFlags: strings.TrimSpace(d.commandFlags())}
	if d.isMySQL() {
		cfg.Dialect = table.MySQL
	}
	var err error
	cfg.Layout, err = layoutOf(d.table)
	return cfg, err
}

// layoutOf converts a table of a file to a layout: the preset's, with the differences of the file
// applied.
func layoutOf(t config.Table) (table.Layout, error) {
	if t.Name == "" && t.Preset == "" {
		return table.Layout{}, nil // postrider's own table
	}
	preset, ok := adopt.PresetNamed(t.Preset)
	if !ok && t.Preset != "" {
		return table.Layout{}, fmt.Errorf("there is no layout %q", t.Preset)
	}
	l := preset.Layout
	if t.Name != "" {
		l.Table = t.Name
	}
	renamed := make(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(t.Columns)) {
		if old := l.Column(key); old != "" {
			renamed[old] = t.Columns[key]
		}
		if err := l.SetColumn(key, t.Columns[key]); err != nil {
			return l, err
		}
	}
	order := t.OrderBy
	if len(order) == 0 {
		for _, column := range l.OrderBy {
			if name, ok := renamed[column]; ok {
				column = name
			}
			if column != "" {
				order = append(order, column)
			}
		}
	}
	l.OrderBy = order
	setState(&l.State, t)
	for target, value := range map[*string]string{
		&l.DefaultType: t.DefaultType, &l.DefaultTopic: t.DefaultTopic, &l.DefaultContentType: t.DefaultContentType, &l.WireID: t.WireID,
	} {
		if value != "" {
			*target = value
		}
	}
	return l, l.Validate()
}

// setState applies the status values of a file. An empty value removes the one of the preset.
func setState(s *table.State, t config.Table) {
	if s.Status == "" {
		s.Pending, s.Processing, s.Published, s.Failed, s.Dead = nil, "", "", "", ""
	}
	one := func(words []string) string {
		if len(words) == 0 {
			return ""
		}
		return words[0]
	}
	for meaning, words := range t.Status {
		switch meaning {
		case "pending":
			s.Pending = words
		case "processing":
			s.Processing = one(words)
		case "published":
			s.Published = one(words)
		case "failed":
			s.Failed = one(words)
		case "dead":
			s.Dead = one(words)
		}
	}
	if s.Status != "" || s.PublishedAt != "" { // the table can record a delivery, so rows need not be deleted
		s.Delete = false
	}
	if t.Delete {
		s.Delete, s.Published = true, ""
	}
}

// openTable opens the database of a table, with at most so many connections.
func (d *database) openTable(ctx context.Context, most int) (*sql.DB, error) {
	if d.isMySQL() {
		db, err := mysql.OpenURL(d.address())
		if err != nil {
			return nil, usageError{err}
		}
		db.SetMaxOpenConns(most)
		db.SetMaxIdleConns(most)
		return db, nil
	}
	cfg, err := d.pgConfig()
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(most) //nolint:gosec // few
	pool, err := d.openWith(ctx, cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(closingPool{stdlib.GetPoolConnector(pool), pool})
	db.SetMaxIdleConns(0) // pgxpool keeps idle connections
	return db, nil
}

// closingPool closes the pool together with the connector.
type closingPool struct {
	driver.Connector
	pool *pgxpool.Pool
}

// Close implements io.Closer, which database/sql looks for.
func (c closingPool) Close() error {
	c.pool.Close()
	return nil
}
