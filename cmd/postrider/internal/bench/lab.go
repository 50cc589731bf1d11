package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
)

// Options configure a scenario. Each scenario reads only the fields that it needs.
type Options struct {
	Shards   int           // of the log
	Payload  int           // bytes of each message's payload, at least 8
	Writers  int           // concurrent producers
	Phase    time.Duration // duration of each phase; in scenarios that count messages: minimum duration
	Rounds   int           // how often each side of a comparison is measured
	Messages int           // size of the backlog
	Rate     int           // messages a second, for scenarios that do not run at full load
	Keys     int           // different ordering keys of the backlog; 0 means 5000
	Topic    string        // of the messages; empty means none
	Received int           // messages that a consumer has received before; 0 leaves that comparison out
	MySQL    string        // address of a MySQL or MariaDB server to measure as well; empty leaves it out
	Program  string        // executable of relays in scenarios that run them as separate processes
	Ring     Ring          // retention of the log and the inbox
	Once     bool          // also compare with a relay that cannot ask the broker what has arrived

	Databases         int           // databases with idle relays
	Canary            time.Duration // interval of canaries of such a relay; 0 means none
	SynchronousCommit string        // of the measured connections; empty: the server's default

	Progress func(text string) // reports the progress
	Logger   *slog.Logger      // for the relay
}

// Ring is the layout of a log, except for its shards. Zero means the default.
type Ring struct {
	Slots  int
	Period time.Duration
	Inbox  time.Duration // inbox window of consumers
}

// Validate reports all invalid options.
func (o *Options) Validate() error {
	var errs []error
	for _, f := range []struct {
		name         string
		value, least int
	}{
		{"shards", o.Shards, 1},
		{"payload", o.Payload, numberSize},
		{"writers", o.Writers, 1},
		{"rounds", o.Rounds, 1},
		{"messages", o.Messages, 1},
		{"rate", o.Rate, 1},
		{"databases", o.Databases, 1},
		{"seconds", int(o.Phase / time.Second), 0},
	} {
		if f.value < f.least {
			errs = append(errs, fmt.Errorf("bench: %s is %d: want at least %d", f.name, f.value, f.least))
		}
	}
	if commits := []string{"", "on", "off", "local", "remote_write", "remote_apply"}; !slices.Contains(commits, o.SynchronousCommit) {
		errs = append(errs, fmt.Errorf("bench: synchronous-commit is %q: want one of %s", o.SynchronousCommit, strings.Join(commits[1:], ", ")))
	}
	return errors.Join(errs...)
}

// Lab is a schema for one run, with connections to it.
type Lab struct {
	Options
	Server string // the server's version

	config *pgxpool.Config
	admin  *pgxpool.Pool
	schema string
	engine engine // the one that is measured at the moment
}

// cleanupTimeout limits the removal of a schema, which also happens after an interrupt.
const cleanupTimeout = time.Minute

// Open creates a schema for the run in the database of config.
func Open(ctx context.Context, config *pgxpool.Config, o Options) (*Lab, error) {
	return openNamed(ctx, config, o, fmt.Sprintf("postrider_bench_%d", os.Getpid()))
}

func openNamed(ctx context.Context, config *pgxpool.Config, o Options, schema string) (*Lab, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Keys == 0 {
		o.Keys = keys
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	lab := &Lab{Options: o, config: config, schema: schema}
	lab.engine = logEngine{lab}
	admin := config.Copy()
	admin.MaxConns = 2
	admin.ConnConfig.RuntimeParams["application_name"] = benchName
	admin.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // do not cache statements of the bench itself
	var err error
	if lab.admin, err = pgxpool.NewWithConfig(ctx, admin); err != nil {
		return nil, err
	}
	if err := lab.claim(ctx); err != nil {
		lab.admin.Close()
		return nil, err
	}
	if err := lab.layOut(ctx); err != nil {
		return nil, errors.Join(err, lab.Close(ctx))
	}
	return lab, nil
}

// Schema returns the name of the schema of the run.
func (l *Lab) Schema() string { return l.schema }

// claim creates the schema. It fails if the schema exists: process IDs are not unique across
// machines.
func (l *Lab) claim(ctx context.Context) error {
	_, err := l.admin.Exec(ctx, l.in("CREATE SCHEMA @schema@"))
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P06" { // duplicate_schema
		return fmt.Errorf("bench: another run is at work in schema %s, or was killed there; to remove it: DROP SCHEMA %s CASCADE",
			l.schema, l.schema)
	}
	return err
}

func (l *Lab) layOut(ctx context.Context) error {
	l.Progress("laying out " + l.schema)
	if err := l.admin.QueryRow(ctx, "SHOW server_version").Scan(&l.Server); err != nil {
		return err
	}
	db, err := l.open(l.admin)
	if err != nil {
		return err
	}
	migrator, err := db.Migrator(postgres.Layout{
		Shards: l.Shards, Slots: l.Ring.Slots, Period: l.Ring.Period, InboxWindow: l.Ring.Inbox,
	})
	if err != nil {
		return err
	}
	if _, err := migrator.Up(ctx); err != nil {
		return err
	}
	_, err = l.admin.Exec(ctx, l.in(createOrders))
	return err
}

// Close removes the schema, also if ctx has ended.
func (l *Lab) Close(ctx context.Context) error {
	defer l.admin.Close()
	l.Progress("removing " + l.schema)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := l.admin.Exec(ctx, l.in("DROP SCHEMA IF EXISTS @schema@ CASCADE")); err != nil {
		return fmt.Errorf("bench: schema %s was not removed: %w", l.schema, err)
	}
	return nil
}

// Leave disconnects and keeps the schema.
func (l *Lab) Leave() { l.admin.Close() }

// pool opens a pool that the caller closes.
func (l *Lab) pool(ctx context.Context, size int) (*pgxpool.Pool, error) {
	config := l.config.Copy()
	config.MaxConns = int32(size)
	return pgxpool.NewWithConfig(ctx, config)
}

func (l *Lab) open(pool *pgxpool.Pool) (*postgres.DB, error) {
	return postgres.Open(pool, postgres.Config{Schema: l.schema})
}

// in inserts the schema's name into a statement.
func (l *Lab) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", pgx.Identifier{l.schema}.Sanitize())
}
