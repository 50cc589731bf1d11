package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// spare is appended to the instance in the name of the second PostgreSQL server.
const spare = "b"

// node is one of the two PostgreSQL servers, whose roles change.
type node struct {
	service string
	dir     string
	address string
	image   *image // nil without one
}

// database is the primary and its synchronous standby.
type database struct {
	services *services
	version  string

	change sync.Mutex // serializes changes of roles

	mu      sync.Mutex
	primary *node
	standby *node
}

// settings configure a server for campaigns: crashes are frequent, so recovery must be short, and a
// standby must be able to catch up.
const settings = `
# for a campaign
max_connections = 250
shared_buffers = 256MB
max_wal_size = 1GB
checkpoint_timeout = 1min
wal_keep_size = 1GB
wal_sender_timeout = 10s
wal_receiver_timeout = 10s
wal_retrieve_retry_interval = 200ms
hot_standby_feedback = on
tcp_user_timeout = 10s
log_lock_waits = on
`

// roles returns the current roles.
func (d *database) roles() (primary, standby *node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.primary, d.standby
}

func (d *database) setRoles(primary, standby *node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.primary, d.standby = primary, standby
}

// dsn returns the server's own address, which follows no failover.
func (n *node) dsn(database, application string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&connect_timeout=5&application_name=%s", n.address, database, application)
}

// as opens a separate connection to a server and calls do.
func (n *node) as(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, n.dsn(database, "world"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// exec runs statements one after another, each in its own transaction.
func (n *node) exec(ctx context.Context, statements ...string) error {
	return n.as(ctx, "postrider", func(conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// create initializes an empty server and starts it.
func (d *database) create(ctx context.Context, n *node) error {
	if err := d.services.run(ctx, nil, "up", n.service); err != nil {
		return err
	}
	var err error
	if n.address, err = d.services.address(n.service, ""); err != nil {
		return err
	}
	if err := n.configure(func(text string) string { return text + settings }); err != nil {
		return err
	}
	if err := d.services.run(ctx, nil, "restart", n.service); err != nil {
		return err
	}
	return n.sync(ctx)
}

// configure changes postgresql.conf and keeps its owner.
func (n *node) configure(change func(string) string) error {
	file := filepath.Join(n.dir, "data", "postgresql.conf")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(change(string(text))), 0o600)
}

// sync syncs files that the server itself has not written.
func (n *node) sync(ctx context.Context) error {
	if n.image == nil {
		return nil
	}
	return command(ctx, "sync", "--file-system", n.dir)
}

var (
	portLine   = regexp.MustCompile(`(?m)^port = .*$`)
	socketLine = regexp.MustCompile(`(?m)^unix_socket_directories = .*$`)
	ownLine    = regexp.MustCompile(`(?m)^(primary_conninfo|synchronous_standby_names) .*\n?`)
)

// replicate makes a node a new standby of the primary, whatever it was before, and waits until
// commits wait for it.
func (d *database) replicate(ctx context.Context, primary, standby *node) error {
	if err := killTree(ctx, d.services.pid(standby.service)); err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(standby.dir, "data", "postgresql.conf"))
	if err != nil {
		return err
	}
	port, sockets := portLine.FindString(string(own)), socketLine.FindString(string(own))
	if err := copyCluster(ctx, primary, standby); err != nil {
		return fmt.Errorf("copying %s: %w", primary.service, err)
	}
	err = standby.configure(func(text string) string {
		return socketLine.ReplaceAllLiteralString(portLine.ReplaceAllLiteralString(text, port), sockets)
	})
	if err != nil {
		return err
	}
	if err := standby.follow(primary); err != nil {
		return err
	}
	if err := standby.sync(ctx); err != nil {
		return err
	}
	if err := d.services.run(ctx, nil, "start", standby.service); err != nil {
		return err
	}
	return d.synchronise(ctx, primary)
}

// follow makes a copy a standby of the primary. After a promotion its own commits wait for no
// standby.
func (n *node) follow(primary *node) error {
	auto := filepath.Join(n.dir, "data", "postgresql.auto.conf")
	text, err := os.ReadFile(auto)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(primary.address)
	if err != nil {
		return err
	}
	content := ownLine.ReplaceAllString(string(text), "") +
		fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=postgres application_name=standby'\n", host, port)
	if err := os.WriteFile(auto, []byte(content), 0o600); err != nil {
		return err
	}
	return createLike(filepath.Join(n.dir, "data", "standby.signal"), auto)
}

// synchronise waits until the standby follows, and then makes commits wait for it.
func (d *database) synchronise(ctx context.Context, primary *node) error {
	if err := d.caughtUp(ctx, primary, "streaming"); err != nil {
		return err
	}
	if err := primary.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	return d.caughtUp(ctx, primary, "sync")
}

// caughtUp waits until the standby has everything that was on the primary's disk at the time of the
// call.
func (d *database) caughtUp(ctx context.Context, primary *node, state string) error {
	var target string
	return within(ctx, time.Minute, 50*time.Millisecond, func() error {
		return primary.as(ctx, "postrider", func(conn *pgx.Conn) error {
			if target == "" {
				if err := conn.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&target); err != nil {
					return err
				}
			}
			var is, sync string
			var there bool
			err := conn.QueryRow(ctx, `SELECT state, sync_state, coalesce(flush_lsn >= $1::text::pg_lsn, false)
				FROM pg_stat_replication WHERE application_name = 'standby'`, target).Scan(&is, &sync, &there)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return errors.New("no standby follows the primary")
			case err != nil:
				return err
			case is != state && sync != state || !there:
				return fmt.Errorf("the standby is %s and %s, at the place that was asked for: %t", is, sync, there)
			}
			return nil
		})
	})
}
