package config

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/relay"
)

// File is a whole configuration. Call [File.Validate] on one that was built in Go.
type File struct {
	// Databases are the databases that hold messages, by name. At least one.
	Databases map[string]Database
	// Destinations are the brokers, by name. At least one.
	Destinations map[string]Destination
	// Feeds connect databases with destinations, by name. At least one.
	Feeds map[string]Feed
	// Reconcilers are the jobs that find missing effects, by name. Defaults to none.
	Reconcilers map[string]Reconciler
	// Connections is the maximum number of connections that a process keeps open to all databases
	// together. It must allow two per database. Defaults to 4 per feed.
	Connections int
	// Health configures the health and metrics endpoints. Defaults to none.
	Health Health
	// Console configures the web console. Defaults to none.
	Console Console

	source source
}

// Database is one database with messages.
type Database struct {
	// URL is the address: a URL, or key=value pairs of PostgreSQL. It may hold a password and must
	// never be logged. Required.
	URL string
	// Schema is the database schema of postrider's objects. Defaults to "postrider" with the log,
	// and to the connection's default with the classic engine.
	Schema string
	// Engine is EngineLog or EngineClassic. Defaults to the log in PostgreSQL, and to the classic engine in MySQL and MariaDB.
	Engine string
	// MaxLogSize is the size in bytes from which the log deletes delivered messages before the end
	// of their retention. Defaults to 0, no limit.
	MaxLogSize int
	// Home names the environment of the database, such as "production". A relay refuses to send
	// from a database whose recorded home differs, such as a restored copy. Defaults to none.
	Home string
	// Table describes where the classic engine finds messages.
	Table Table
}

// Destination is one broker.
type Destination struct {
	// URL is the address, with credentials. It must never be logged. Required.
	URL string
	// Broker is the name of the driver. Defaults to the driver of the URL's scheme.
	Broker string
	// Options are the driver's options, by name. In a file they stand next to url and broker.
	Options map[string]string
}

// Feed delivers all messages of a database, or some of them, to destinations. Relays that serve
// feeds of the same name in the same database share the work; feeds of different names each deliver
// everything.
type Feed struct {
	// Database is the name of the source database. Defaults to the only one.
	Database string
	// Destination is the destination of routes that name none. Defaults to the only one.
	Destination string
	// Only selects the messages to deliver. The log engine counts all others as done, the classic
	// engine does not touch them. Defaults to all.
	Only route.Match
	// Order is "strict" or "skip". With "strict", later messages of a key wait for one that fails;
	// with "skip", they overtake it. Defaults to "strict".
	Order string
	// Relay tunes the relay. Its Feed, Name, Order and Logger are not used.
	Relay relay.Config
	// Create makes the relay create the feed if it does not exist, and says where the feed begins:
	// "now", "oldest" or a time. Without it, a relay only creates the first feed of a database.
	// Defaults to none.
	Create string
	// Routes choose the destination of each message; the first match counts. A message that no
	// route matches waits, and the relay logs it. Defaults to one route that sends everything to
	// Destination.
	Routes []route.Rule
}

// maxFile is the maximum size of a configuration file, in bytes.
const maxFile = 1 << 20

// Load reads a file, with variables from the environment. See [Parse].
func Load(path string) (*File, error) {
	f, err := os.Open(path) //nolint:gosec // the user says which file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // was only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, data, os.LookupEnv)
}

// Destination opens a publisher for the named destination. It does not wait for the broker.
func (f *File) Destination(name string, log *slog.Logger) (postrider.Publisher, error) {
	d, ok := f.Destinations[name]
	if !ok {
		return nil, fmt.Errorf("config: there is no destination %q: there are %s", name, list(f.Destinations))
	}
	pub, err := d.Open(log)
	if err != nil {
		return nil, fmt.Errorf("config: destinations.%s: %w", name, err)
	}
	return pub, nil
}

// Driver returns the driver of the destination.
func (d Destination) Driver() (broker.Driver, error) {
	if d.Broker != "" {
		return broker.Lookup(d.Broker)
	}
	return broker.ForURL(d.URL)
}

// Open opens a publisher. It does not wait for the broker.
func (d Destination) Open(log *slog.Logger) (postrider.Publisher, error) {
	driver, err := d.Driver()
	if err != nil {
		return nil, err
	}
	return driver.Open(&broker.Settings{URL: d.URL, Values: d.Options, Logger: log})
}
