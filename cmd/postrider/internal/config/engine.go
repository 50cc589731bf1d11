package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The engines: how a database stores its messages.
const (
	EngineLog     = "log"     // postrider's own log tables, in PostgreSQL
	EngineClassic = "classic" // a table whose rows have a status, in PostgreSQL, MySQL or MariaDB
)

// Table describes where the classic engine finds messages. With neither Name nor Preset it is
// postrider's own table, otherwise a table of the application.
type Table struct {
	// Name is the name of the table, qualified with its schema unless that is the connection's
	// default. Defaults to the preset's.
	Name string
	// Preset is a known layout, such as "prisma". Defaults to none.
	Preset string
	// Columns maps what a column holds to its name. An empty name means that the table has no such
	// column.
	Columns map[string]string
	// OrderBy are the columns that define the delivery order. Defaults to the preset's, or else to
	// the ID.
	OrderBy []string
	// Status maps the meaning of a status to the values that the status column has for it.
	Status map[string][]string
	// Delete makes relays delete rows after delivery.
	Delete bool
	// DefaultType, DefaultTopic and DefaultContentType are used where the table has no such column.
	DefaultType, DefaultTopic, DefaultContentType string
	// WireID is the template of the message ID that the broker sees. {id} stands for the row's ID
	// and {database} for an identifier of the database. Defaults to the message's own ID.
	WireID string
	// Shards is the number of parts that keys are divided into, and the maximum number of relays
	// that share the work. Defaults to 8.
	Shards int
	// Retention is how long delivered rows are kept. Defaults to 7 days in postrider's own table,
	// and to forever in a table of the application.
	Retention time.Duration
}

// TableColumns returns the keys that [Table.Columns] can have.
func TableColumns() []string {
	keys := make([]string, len(tableColumns))
	for i, c := range tableColumns {
		keys[i] = c.key
	}
	return keys
}

// TablePresets returns the names that [Table.Preset] can have.
func TablePresets() []string {
	return []string{"bento", "debezium", "events-bigserial", "events-uuid", "integration-events", "open-outbox", "prisma", "watermill"}
}

var statusWords = []string{"pending", "processing", "published", "failed", "dead"}

// EngineName returns the engine, or its default if none is set. MySQL and MariaDB support the
// classic engine only.
func (d Database) EngineName() string {
	if d.Engine == "" && isMySQL(d.URL) {
		return EngineClassic
	}
	if d.Engine == "" {
		return EngineLog
	}
	return d.Engine
}

func isMySQL(address string) bool {
	return strings.HasPrefix(address, "mysql://") || strings.HasPrefix(address, "mariadb://")
}

// database reads a database.
func (r *reader) database(n *yaml.Node, path string) Database {
	var d Database
	t := &d.Table
	r.fields(n, path, map[string]func(*yaml.Node, string){
		"url": r.textInto(&d.URL), "schema": r.textInto(&d.Schema), "engine": r.textInto(&d.Engine),
		"max_log_size": r.numberInto(&d.MaxLogSize), "home": r.textInto(&d.Home),
		"table": r.textInto(&t.Name), "layout": r.textInto(&t.Preset), "order_by": r.textsInto(&t.OrderBy),
		"delete": r.boolInto(&t.Delete), "wire_id": r.textInto(&t.WireID), "shards": r.numberInto(&t.Shards),
		"retention": r.durationInto(&t.Retention),
		"columns": func(n *yaml.Node, path string) {
			t.Columns = make(map[string]string)
			known := make(map[string]func(*yaml.Node, string))
			for _, key := range TableColumns() {
				known[key] = func(n *yaml.Node, path string) { t.Columns[key], _ = r.text(n, path) }
			}
			r.fields(n, path, known)
		},
		"status": func(n *yaml.Node, path string) {
			t.Status = make(map[string][]string)
			known := make(map[string]func(*yaml.Node, string))
			for _, word := range statusWords {
				known[word] = func(n *yaml.Node, path string) {
					var words []string
					r.textsInto(&words)(n, path)
					t.Status[word] = words
				}
			}
			r.fields(n, path, known)
		},
		"default": func(n *yaml.Node, path string) {
			r.fields(n, path, map[string]func(*yaml.Node, string){
				"type": r.textInto(&t.DefaultType), "topic": r.textInto(&t.DefaultTopic), "content_type": r.textInto(&t.DefaultContentType),
			})
		},
	})
	return d
}

// table checks that the settings fit the engine. The engine itself checks whether the columns and
// status values fit together.
func (c *checker) table(path string, d Database) {
	t := d.Table
	set := map[string]bool{
		"table": t.Name != "", "layout": t.Preset != "", "columns": len(t.Columns) > 0, "order_by": len(t.OrderBy) > 0, "delete": t.Delete,
		"status": len(t.Status) > 0, "wire_id": t.WireID != "", "default": t.DefaultType+t.DefaultTopic+t.DefaultContentType != "",
		"shards": t.Shards != 0, "retention": t.Retention != 0,
	}
	switch {
	case d.Engine != "" && d.Engine != EngineLog && d.Engine != EngineClassic:
		c.wrong(path+".engine", "%q is not an engine: want %s or %s", d.Engine, EngineLog, EngineClassic)
		return
	case d.EngineName() == EngineLog && isMySQL(d.URL):
		c.wrong(path+".engine", "the log needs PostgreSQL: MySQL and MariaDB have the classic engine")
		return
	case d.EngineName() == EngineLog:
		for _, key := range keys(set) {
			if set[key] {
				c.wrong(path+"."+key, "only the classic engine has it: add engine: classic")
			}
		}
		return
	}
	if t.Preset != "" && !slices.Contains(TablePresets(), t.Preset) {
		c.wrong(path+".layout", "there is no layout %q: there are %s%s", t.Preset, strings.Join(TablePresets(), ", "), didYouMean(t.Preset, TablePresets()))
	}
	if t.Shards > 256 {
		c.wrong(path+".shards", "%d is more than 256", t.Shards)
	}
	for _, word := range keys(t.Status) {
		if !slices.Contains(statusWords, word) {
			c.wrong(path+".status."+word, "unknown key %q: there are %s", word, strings.Join(statusWords, ", "))
		}
		if word != "pending" && len(t.Status[word]) > 1 {
			c.wrong(path+".status."+word, "want one word: only what is pending can have several")
		}
	}
	for _, key := range keys(t.Columns) {
		if !slices.Contains(TableColumns(), key) {
			c.wrong(path+".columns."+key, "unknown key %q%s", key, didYouMean(key, TableColumns()))
		}
	}
	for _, key := range []string{"columns", "order_by", "delete", "status", "wire_id", "default"} {
		if set[key] && t.Name == "" && t.Preset == "" {
			c.wrong(path+"."+key, "of which table? add table, with its name")
		}
	}
	if t.Name == "" || t.Preset != "" {
		return
	}
	for _, key := range []string{"id", "payload"} {
		if t.Columns[key] == "" {
			c.wrong(path+".columns", "the column %s is missing; with layout: NAME, the names of a preset are used", key)
		}
	}
	if t.Columns["type"] == "" && t.DefaultType == "" {
		c.wrong(path+".columns", "the column type is missing; a table without one needs default: {type: NAME}")
	}
}

// sharedTables refuses two feeds on one table of the classic engine unless their filters exclude
// each other. The status of a row belongs to all feeds: once one feed has marked a row as sent,
// another feed would skip it.
func (c *checker) sharedTables() {
	serves := make(map[[3]string][]string)
	for _, name := range keys(c.Feeds) {
		database, err := choose("database", c.Feeds[name].Database, c.Databases)
		if err != nil || c.Databases[database].EngineName() != EngineClassic {
			continue
		}
		d := c.Databases[database]
		table := [3]string{d.URL, d.Schema, d.Table.Name + "/" + d.Table.Preset}
		only := c.Feeds[name].Only
		for _, first := range serves[table] {
			if other := c.Feeds[first].Only; !only.Excludes(&other) {
				c.wrong("feeds."+name, "the table of database %s serves feed %s already: with the classic engine, a row goes to one feed; "+
					"let feeds.%s.only and feeds.%s.only exclude each other", database, first, first, name)
			}
		}
		serves[table] = append(serves[table], name)
	}
}
