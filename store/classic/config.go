package classic

import (
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/store/transactor"
)

// Config is where the tables are, and how they are used.
type Config struct {
	// Dialect is MySQL or PostgreSQL. Required, except by [Open].
	Dialect Dialect
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
	// InboxWindow is for how long a consumer remembers, at least, which messages it has received. It is fixed when a consumer is
	// first opened. Defaults to 7 days.
	InboxWindow time.Duration
	// Transactor is how [DB.Transactor] runs functions. LeaveUncertain saves two round trips here, and nobody notices then that a
	// function has kept a deadlock to itself.
	Transactor transactor.Config
	// CommandFlags are what the commands that errors name carry, so that they act on these tables and on no others, such as
	// "--database orders". Defaults to "--engine classic" on PostgreSQL, and to none on MySQL.
	CommandFlags string
}

const week = 7 * 24 * time.Hour

func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Dialect != MySQL && c.Dialect != PostgreSQL {
		errs = append(errs, fmt.Errorf("classic: Dialect is %q: want MySQL or PostgreSQL", c.Dialect))
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
	if c.CommandFlags == "" && c.Dialect == PostgreSQL {
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
	if c.InboxWindow == 0 {
		c.InboxWindow = week
	}
	if c.InboxWindow < time.Second {
		errs = append(errs, fmt.Errorf("classic: InboxWindow is %v: want at least 1 s", c.InboxWindow))
	}
	if c.Shards < 1 || c.Shards > 256 {
		errs = append(errs, fmt.Errorf("classic: Shards is %d: want 1 to 256", c.Shards))
	}
	if c.PurgeChunk < 1 {
		errs = append(errs, fmt.Errorf("classic: PurgeChunk is %d: want at least 1", c.PurgeChunk))
	}
	if c.DedupWindow < 0 {
		errs = append(errs, fmt.Errorf("classic: DedupWindow is %v: want more than 0", c.DedupWindow))
	}
	var err error
	if c.Transactor, err = c.Transactor.WithDefaults(); err != nil {
		errs = append(errs, fmt.Errorf("classic: %w", err))
	}
	if c.Layout.native && c.Shards != nativeShards {
		errs = append(errs, fmt.Errorf("classic: Shards is %d, but the table of our own has %d", c.Shards, nativeShards))
	}
	errs = append(errs, c.Layout.Validate(), c.Layout.checkOnly(&c.Only))
	return c, errors.Join(errs...)
}

// Validate reports all that is wrong with the configuration; defaults are filled in before.
func (c Config) Validate() error {
	_, err := c.withDefaults()
	return err
}
