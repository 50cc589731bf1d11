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

// Config configures a console: what it shows, and to whom.
type Config struct {
	// Databases are the databases to show, in this order. At least one.
	Databases []Database
	// Relays returns the relays of this process. They report more than the database does: failure
	// rates, and times from enqueue to confirmation. Defaults to nil, for none.
	Relays func() []Relay
	// Access configures authentication. The zero value gives everybody the role admin, and is
	// refused unless the console can only be reached from this machine: see [auth.Config.Validate].
	Access auth.Config
	// Prefix is the URL path of the console, such as "/postrider". Defaults to "/".
	Prefix string
	// Redact are JSON paths whose values are hidden from every role, such as "$.card.number" or
	// "$..password". Defaults to none.
	Redact []string
	// TraceURL is the URL of a trace, with "{trace_id}" as placeholder. Defaults to no link.
	TraceURL string
	// Sample is the interval between two samples of a database, at least 1 s. Defaults to 2 s.
	Sample time.Duration
	// Scrub removes secrets from the texts of errors. Defaults to a function that removes passwords
	// from addresses.
	Scrub func(text string) string
	// Version is the version of the program, for display.
	Version string
	// Logger logs what operators do, and what fails. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Database is a database to show. A nil part disables its pages.
type Database = source.Database

// Reconcilers are the reconcilers of a database.
type Reconcilers = source.Reconcilers

// Finding is a finding of the doctor.
type Finding = source.Finding

// Relay is a relay of this process.
type Relay = source.Relay

const defaultSample = 2 * time.Second

// withDefaults returns the configuration with its defaults, and all its mistakes.
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
