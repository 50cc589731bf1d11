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

// File is a whole configuration. One made in Go is checked with [File.Validate].
type File struct {
	// Databases are where messages come from, by name. At least one.
	Databases map[string]Database
	// Destinations are where messages go, by name. At least one.
	Destinations map[string]Destination
	// Feeds are the ways between them, by name. At least one.
	Feeds map[string]Feed
	// Reconcilers are jobs that look for what is missing, by name. Defaults to none.
	Reconcilers map[string]Reconciler
	// Connections is the most that a process keeps open to all databases together, at least two for each. Defaults to 4
	// for each feed.
	Connections int
	// Health is where the process says how it is. Defaults to nowhere.
	Health Health
	// Console is where people look after messages with a browser. Defaults to nowhere.
	Console Console

	source source
}

// Database is one database with messages.
type Database struct {
	// URL is its address: a URL, or key=value pairs of PostgreSQL. It may hold a password and must never be logged. Required.
	URL string
	// Schema holds what is ours. Defaults to "postrider" with the log, and to the connection's own with the classic engine.
	Schema string
	// Engine is EngineLog or EngineClassic. Defaults to the log in PostgreSQL, and to the classic engine in MySQL and MariaDB.
	Engine string
	// MaxLogSize is from how many bytes on the log does not keep delivered messages for their time. Defaults to 0, no limit.
	MaxLogSize int
	// Home is what you call the place where the database lives, such as "production": relays in a copy of it, which have another, send nothing.
	// Defaults to none.
	Home string
	// Table is where the classic engine finds messages.
	Table Table
}

// Destination is one broker.
type Destination struct {
	// URL is its address, with credentials. It must never be logged. Required.
	URL string
	// Broker is the name of its driver. Defaults to the one that the URL's scheme means.
	Broker string
	// Options are what else the driver can be told, as text, by name. In a file they stand beside URL and Broker.
	Options map[string]string
}

// Feed carries all messages of a database, or some of them, to destinations. Relays that serve feeds of the same name in
// the same database share the work; feeds of different names each deliver everything.
type Feed struct {
	// Database names where messages come from. Defaults to the only one.
	Database string
	// Destination is where routes lead that name none. Defaults to the only one.
	Destination string
	// Only is the filter: other messages are passed over as done, or with the classic engine left alone. Defaults to all.
	Only route.Match
	// Order is "strict": per key, nothing overtakes a message that fails; or "skip": the later messages of its key do.
	// Defaults to "strict".
	Order string
	// Relay tunes the relay. Its Feed, Name, Order and Logger are not used.
	Relay relay.Config
	// Create has the feed created if its database has others but not this one, and says where it begins: "now", "oldest" or a
	// time. Otherwise only the first feed of a database is created. Defaults to none of these.
	Create string
	// Routes decide about each message, the first that matches. A message that none matches waits, and the log says so.
	// Defaults to one that sends everything to Destination.
	Routes []route.Rule
}

// maxFile is the largest file that is read, in bytes.
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

// Destination opens a publisher for the destination with the name. It does not wait for the broker.
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

// Driver returns the driver that the destination means.
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
