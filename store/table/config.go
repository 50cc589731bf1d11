package table

import (
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Config is where the tables are, and how they are used.
type Config struct {
	// Dialect is MySQL or PostgreSQL. Required.
	Dialect sqltext.Dialect
	// Schema holds Postrider's own tables: a database of a MySQL server, a schema of a PostgreSQL one. Defaults to the
	// connection's own.
	Schema string
	// Prefix begins the names of these tables. Defaults to "postrider_".
	Prefix string
	// Layout is the table that messages lie in. Defaults to Native.
	Layout Layout
	// Only is the feed's filter: other rows are left alone, as if they were not there. Feeds of one table have filters that exclude
	// each other. Defaults to all.
	Only route.Match
	// Shards is how many parts the keys are divided into, and so the largest number of relays that share the work. It is
	// fixed when a feed is first opened. Defaults to 8.
	Shards int
	// Retention is for how long delivered messages are kept. Defaults to 7 days in a table of our own, and for ever in a
	// table that was adopted. Negative means for ever.
	Retention time.Duration
	// PurgeChunk is how many rows one statement of the housekeeping deletes. Defaults to 1000.
	PurgeChunk int
	// DedupWindow is for how long a dedup key stays unique. Defaults to 7 days.
	DedupWindow time.Duration
	// CommandFlags are what the commands that errors name carry, so that they act on these tables and on no others, such as
	// "--database orders". Defaults to "--engine classic" on PostgreSQL, and to none on MySQL.
	CommandFlags string
}

const week = 7 * 24 * time.Hour

func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Dialect != sqltext.MySQL && c.Dialect != sqltext.PostgreSQL {
		errs = append(errs, fmt.Errorf("table: Dialect is %q: want MySQL or PostgreSQL", c.Dialect))
	}
	if c.Prefix == "" {
		c.Prefix = "postrider_"
	}
	if c.Layout.Table == "" {
		c.Layout = Native(c.Prefix)
		if c.Retention == 0 {
			c.Retention = week
		}
	}
	if !c.Layout.native && c.Layout.Columns.ContentType == "" && c.Layout.DefaultContentType == "" {
		c.Layout.DefaultContentType = "application/json"
	}
	if c.CommandFlags == "" && c.Dialect == sqltext.PostgreSQL {
		c.CommandFlags = "--engine classic"
	}
	if c.Shards == 0 {
		c.Shards = 8
	}
	if c.PurgeChunk == 0 {
		c.PurgeChunk = 1000
	}
	if c.DedupWindow == 0 {
		c.DedupWindow = week
	}
	if c.Shards < 1 || c.Shards > 256 {
		errs = append(errs, fmt.Errorf("table: Shards is %d: want 1 to 256", c.Shards))
	}
	if c.PurgeChunk < 1 {
		errs = append(errs, fmt.Errorf("table: PurgeChunk is %d: want at least 1", c.PurgeChunk))
	}
	if c.DedupWindow < 0 {
		errs = append(errs, fmt.Errorf("table: DedupWindow is %v: want more than 0", c.DedupWindow))
	}
	if c.Layout.native && c.Shards != nativeShards {
		errs = append(errs, fmt.Errorf("table: Shards is %d, but the table of our own has %d", c.Shards, nativeShards))
	}
	errs = append(errs, c.Layout.Validate(), c.Layout.checkOnly(&c.Only))
	return c, errors.Join(errs...)
}

// own is where Postrider's own tables are.
func (c *Config) own() sqltext.Tables {
	return sqltext.Tables{Dialect: c.Dialect, Schema: c.Schema, Prefix: c.Prefix}
}

// stmt begins a statement.
func (c *Config) stmt(parts ...string) *sqltext.Stmt { return c.own().Stmt(parts...) }

// Validate reports all that is wrong with the configuration; defaults are filled in before.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}
