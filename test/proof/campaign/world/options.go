package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Destinations of messages. Each is the name of a feed, of a destination of the relay, and the
// topic of its messages; a topic such as kafka.nowhere belongs to it as well.
const (
	Kafka    = "kafka"
	NATS     = "nats"
	RabbitMQ = "rabbitmq"
	Redis    = "redis"
	HTTP     = "http"
)

// Destinations returns all destinations.
func Destinations() []string { return []string{Kafka, NATS, RabbitMQ, Redis, HTTP} }

// MaxPayload is the largest payload that every destination accepts. Anything larger is poison.
const MaxPayload = 64 << 10

// Attempts is how often relays try a message that is refused.
const Attempts = 3

// Options configures a world.
type Options struct {
	// Dir is an existing folder for logs, configuration files and disk images. Required.
	Dir string
	// Postrider is the binary that migrates the database and runs the relays. Required.
	Postrider string
	// Older is the binary of an earlier version, for rolling upgrades. Defaults to none.
	Older string
	// Skewed is a binary whose wall clock can be wrong: see [BuildSkewed]. Defaults to none.
	Skewed string
	// Instance distinguishes worlds on one machine, in lower case. Defaults to "campaign".
	Instance string
	// Postgres is the version, 15 or 18. Defaults to "15".
	Postgres string
	// Relays is the number of relay processes. Defaults to 3; the last one goes through PgBouncer.
	Relays int
	// Lease is the relays' lease. Defaults to 6 s.
	Lease time.Duration
	// Secret signs webhooks. Defaults to none.
	Secret string
	// Period is how long one slot of the log's ring is written; there are 8. Defaults to a minute.
	Period time.Duration
	// ImageSize is the size of the file system of each PostgreSQL server. Defaults to 16 GiB; the
	// file is sparse.
	ImageSize int64
	// Bulk is the number of messages of a bulk transaction. Defaults to 20,000.
	Bulk int
	// Plain leaves out what only root can do: disk images and network namespaces.
	Plain bool
	// Once makes relays publish to Kafka in transactions.
	Once bool
	// Without lists destinations to leave out.
	Without []string
	// Note is called for unplanned events, such as a relay that exits by itself. Defaults to a
	// no-op.
	Note func(record.Event)
}

var instanceForm = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// complete sets defaults and reports invalid options.
func (o *Options) complete() error {
	if o.Instance == "" {
		o.Instance = "campaign"
	}
	if o.Postgres == "" {
		o.Postgres = "15"
	}
	if o.Relays == 0 {
		o.Relays = 3
	}
	if o.Lease == 0 {
		o.Lease = 6 * time.Second
	}
	if o.Bulk == 0 {
		o.Bulk = 20_000
	}
	if o.Period == 0 {
		o.Period = time.Minute
	}
	if o.ImageSize == 0 {
		o.ImageSize = 16 << 30
	}
	if Rootless() != nil {
		o.Plain = true
	}
	if !instanceForm.MatchString(o.Instance) {
		return fmt.Errorf("instance %q: want small letters and digits", o.Instance)
	}
	if o.Relays < 2 {
		return errors.New("want at least two relays: one of them goes through PgBouncer")
	}
	// Processes start in other folders than this one.
	for _, path := range []*string{&o.Dir, &o.Postrider, &o.Older, &o.Skewed} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(absolute); err != nil {
			return err
		}
		*path = absolute
	}
	if o.Dir == "" || o.Postrider == "" {
		return errors.New("options: Dir and Postrider are required")
	}
	return nil
}

// Rootless returns the reason why this machine supports no disk images and network namespaces, or
// nil.
func Rootless() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can mount disk images and make network namespaces")
	}
	for _, program := range []string{"ip", "nsenter", "mount", "umount", "mkfs.ext4"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	return nil
}
