package classic

import "strings"

// own are Postrider's tables, as statements name them in braces.
var own = []string{
	"identity", "outbox", "feeds", "members", "leases", "aside", "starts", "dedup", "problems", "audit", "migrations",
	"commits", "consumers", "consumer_heard", "inbox", "inbox_aside", "inbox_turns", "idempotency", "sagas", "saga_steps",
}

// in completes a statement: {leases} and the like become the tables' full names, {now} the server's clock, and question marks
// what the dialect writes for arguments.
func (c *Config) in(statement string) string {
	pairs := []string{"{now}", c.Dialect.now(), "{limits}", c.table("outbox_limits")} // a function
	for _, name := range own {
		pairs = append(pairs, "{"+name+"}", c.table(name))
	}
	return c.Dialect.bind(strings.NewReplacer(pairs...).Replace(statement))
}

func (c *Config) table(name string) string {
	if c.Schema == "" {
		return c.Dialect.quote(c.Prefix + name)
	}
	return c.Dialect.quote(c.Schema) + "." + c.Dialect.quote(c.Prefix+name)
}
