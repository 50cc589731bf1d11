package postgres

import (
	"fmt"
	"regexp"
	"strings"
)

// Config names the part of a database that belongs to Postrider.
type Config struct {
	// Schema holds every table and function. Lower-case letters, digits and underscores. Defaults to "postrider".
	Schema string
	// MaxLogSize is from how many bytes on relays do not keep delivered messages for their time: slots of the ring that every feed has passed
	// are emptied, the oldest first. What a feed still needs is kept. It counts in [New]. Defaults to 0, no limit.
	MaxLogSize int64
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

func (c Config) withDefaults() (Config, error) {
	if c.Schema == "" {
		c.Schema = "postrider"
	}
	if !schemaName.MatchString(c.Schema) || strings.HasPrefix(c.Schema, "pg_") {
		return c, fmt.Errorf("postgres: schema name %q: want lower-case letters, digits and underscores, at most 48, "+
			"not starting with a digit or pg_", c.Schema)
	}
	if c.MaxLogSize < 0 {
		return c, fmt.Errorf("postgres: MaxLogSize is %d: want 0 or more", c.MaxLogSize)
	}
	return c, nil
}

// in puts the quoted schema name in place of each @schema@.
func (c Config) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", `"`+c.Schema+`"`)
}
