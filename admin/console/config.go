package console

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/source"
	"github.com/postrider/postrider/internal/phrase"
)

// Config is what a console shows, and to whom.
type Config struct {
	// Databases are what there is to see, in the order in which they are offered. At least one.
	Databases []Database
	// Relays returns those of this process; nil if it has none. They know more than the database does: rates of failures,
	// and times from enqueue to confirmation.
	Relays func() []Relay
	// Access says who may come in. The zero value lets everybody in as admin, and is refused unless the console is only
	// reached from this machine: see [auth.Config.Validate].
	Access auth.Config
	// Prefix is the path that the console is mounted at, such as "/postrider". Defaults to "/".
	Prefix string
	// Redact are JSON paths whose values nobody gets to see, such as "$.card.number" or "$..password". Defaults to none.
	Redact []string
	// TraceURL leads to a trace in another program, with "{trace_id}" in it. Defaults to no link.
	TraceURL string
	// Sample is the time between two looks at the database, at least 1 s. Defaults to 2 s.
	Sample time.Duration
	// Scrub takes secrets out of the texts of errors. Defaults to what takes passwords out of addresses.
	Scrub func(text string) string
	// Version is that of the program, for people.
	Version string
	// Logger is told of what operators do and of what fails. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Database is one database. Parts that are nil have no pages.
type Database = source.Database

// Reconcilers are the reconcilers of a database.
type Reconcilers = source.Reconcilers

// Finding is what a doctor has found.
type Finding = source.Finding

// Relay is a relay of this process.
type Relay = source.Relay

const defaultSample = 2 * time.Second

// withDefaults returns the configuration with its defaults, and everything that is wrong with it.
func (c Config) withDefaults() (Config, []error) {
	var wrong []error
	errorf := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("console: "+format, args...)) }
	if len(c.Databases) == 0 {
		errorf("there is no database to show")
	}
	names := make(map[string]bool)
	for _, d := range c.Databases {
		if d.Name == "" {
			errorf("a database has no name")
		} else if names[d.Name] {
			errorf("two databases are called %q", d.Name)
		}
		names[d.Name] = true
	}
	c.Prefix = "/" + strings.Trim(c.Prefix, "/")
	if clean, err := url.Parse(c.Prefix); err != nil || clean.Path != c.Prefix || clean.RawQuery != "" || strings.Contains(c.Prefix, "//") ||
		strings.ContainsAny(c.Prefix, `{}"'<>\`+" \t\r\n") {
		errorf("prefix %q is not a path such as /postrider", c.Prefix)
	}
	if c.TraceURL != "" {
		to, err := url.Parse(c.TraceURL)
		if err != nil || to.Scheme != "https" && to.Scheme != "http" || to.Host == "" || !strings.Contains(c.TraceURL, "{trace_id}") {
			errorf("trace URL: want an http or https address with {trace_id} in it")
		}
	}
	if c.Sample == 0 {
		c.Sample = defaultSample
	}
	if c.Sample < time.Second {
		errorf("sample is %s: want at least 1 s", c.Sample)
	}
	if c.Scrub == nil {
		c.Scrub = phrase.WithoutPasswords
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Access.Payloads == "" {
		c.Access.Payloads = auth.Operator
	}
	return c, wrong
}
