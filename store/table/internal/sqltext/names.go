package sqltext

import "strings"

// Tables says where Postrider's own tables are, and how its server is spoken to.
type Tables struct {
	Dialect Dialect
	Schema  string // empty: the connection's own
	Prefix  string
}

// names are Postrider's tables, as statements name them in braces.
var names = []string{
	"identity", "outbox", "feeds", "members", "leases", "deferred", "starts", "dedup", "problems", "audit", "migrations",
	"commits", "consumers", "consumer_heard", "inbox", "inbox_deferred", "inbox_turns", "idempotency", "sagas", "saga_steps",
}

// In completes a statement: {leases} and the like become the tables' full names, {now} the server's clock, and question marks
// what the dialect writes for arguments.
func (c Tables) In(statement string) string {
	pairs := []string{"{now}", c.Dialect.Now(), "{limits}", c.Table("outbox_limits")} // a function
	for _, name := range names {
		pairs = append(pairs, "{"+name+"}", c.Table(name))
	}
	return c.Dialect.bind(strings.NewReplacer(pairs...).Replace(statement))
}

// Table returns the quoted name of one of our own tables.
func (c Tables) Table(name string) string {
	if c.Schema == "" {
		return c.Dialect.Quote(c.Prefix + name)
	}
	return c.Dialect.Quote(c.Schema) + "." + c.Dialect.Quote(c.Prefix+name)
}

// NotInNames are characters that no name or word of a layout has: statements have places for arguments and tables written so.
const NotInNames = "?{}\x00"
