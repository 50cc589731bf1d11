package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/postrider/postrider/store/transactor"
)

// Config names the part of a database that belongs to Postrider.
type Config struct {
	// Schema holds every table and function. Lower-case letters, digits and underscores. Defaults to "postrider".
	Schema string
	// LockKeys makes Enqueue lock each message's key until the transaction ends, so that messages of a key are
	// delivered in commit order even if their writers share no other lock. Writers that lock the aggregate's row before
	// they enqueue do not need it. Defaults to false.
	LockKeys bool
	// Transactor is how [DB.Transactor] runs functions.
	Transactor transactor.Config
	// MaxLogSize is from how many bytes on relays do not keep delivered messages for their time: slots of the ring that every feed has passed
	// are emptied, the oldest first. What a feed still needs is kept. Defaults to 0, no limit.
	MaxLogSize int64
	// Home is what you call the place where this database lives, such as "production". The first relay that has one gives it to the ledger, and
	// relays that have another, or none, send nothing from then on: a copy of the server's files, beside the original, is the same database in
	// all that can be asked. [DB.Rebase] lets a copy have another. Defaults to none.
	Home string
	// CommandFlags are what the commands that errors name carry, so that they act on this log and on no other, such as "--database orders".
	// Defaults to "--schema" with its name.
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

// in puts the quoted schema name in place of each @schema@.
func (c Config) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", `"`+c.Schema+`"`)
}
