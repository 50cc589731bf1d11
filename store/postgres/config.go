package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/postrider/postrider/store/transactor"
)

// Config says which schema of a database Postrider uses, and how.
type Config struct {
	// Schema is the name of the schema that holds every table and function: lower-case letters,
	// digits and underscores. Defaults to "postrider".
	Schema string
	// LockKeys makes Enqueue lock each message's key until the transaction ends, so that messages
	// of a key are delivered in commit order even if their writers share no other lock. Writers
	// that lock the aggregate's row before they enqueue do not need it. Defaults to false.
	LockKeys bool
	// Transactor configures [DB.Transactor].
	Transactor transactor.Config
	// MaxLogSize is the size of the log, in bytes, above which relays no longer keep delivered
	// messages for the retention period. They empty slots of the ring that every feed has passed,
	// oldest first, and never a slot that a feed still needs. Defaults to 0, no limit.
	MaxLogSize int64
	// Home names the environment of this database, such as "production". The first relay that has a
	// Home stores it in the ledger. From then on, relays with another Home, or with none, send
	// nothing. This protects against a file-level copy of the server running beside the original:
	// the copy cannot be told from the original in any other way. [DB.Rebase] gives a copy another
	// Home. Defaults to none.
	Home string
	// CommandFlags are the flags of the commands that error messages suggest, such as "--database
	// orders", so that these commands act on this log and no other. Defaults to "--schema" with the
	// name of the schema.
	CommandFlags string
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

func (c Config) withDefaults() (Config, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("postgres: "+format, args...)) }
	if c.Schema == "" {
		c.Schema = "postrider"
	}
	if !schemaName.MatchString(c.Schema) || strings.HasPrefix(c.Schema, "pg_") {
		fail("schema name %q: want lower-case letters, digits and underscores, at most 48, not starting with a digit or pg_", c.Schema)
	}
	if len(c.Home) > 100 {
		fail("Home has %d bytes: want at most 100", len(c.Home))
	}
	if c.CommandFlags == "" {
		c.CommandFlags = "--schema " + c.Schema
	}
	if c.MaxLogSize < 0 {
		fail("MaxLogSize is %d: want 0 or more", c.MaxLogSize)
	}
	var err error
	if c.Transactor, err = c.Transactor.WithDefaults(); err != nil {
		fail("%w", err)
	}
	return c, errors.Join(errs...)
}

// in replaces each @schema@ with the quoted schema name.
func (c Config) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", `"`+c.Schema+`"`)
}
