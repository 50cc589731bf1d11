package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/campaign/proxy"
)

// Restore moves the database, as an operator does who restores a copy and continues with it: by a
// dump into a new cluster if the binaries include pg_dump, otherwise by a copy within the cluster.
// No client is connected meanwhile, so nothing is lost. Relays detect that the ledger was written
// elsewhere, and pause until [World.Rebase]. After a dump there is no standby until
// [World.Replicate].
func (w *World) Restore(ctx context.Context) (how string, err error) {
	d := w.database
	d.change.Lock()
	defer d.change.Unlock()
	defer w.closeDatabase()()
	primary, standby := d.roles()
	if err := disconnect(ctx, primary); err != nil {
		return "", err
	}
	bin := filepath.Join("/usr/lib/postgresql", d.version, "bin")
	if _, err := os.Stat(filepath.Join(bin, "pg_dump")); err != nil {
		return "by a copy within the cluster", clone(ctx, primary)
	}
	if err := w.dumpTo(ctx, bin, primary, standby); err != nil {
		// Undo the change.
		return "", errors.Join(err, w.revive(ctx, primary), d.replicate(ctx, primary, standby))
	}
	d.setRoles(standby, primary)
	return "by a dump into a new cluster", nil
}

// dumpTo makes the standby a new cluster, moves the database there, and stops the primary.
func (w *World) dumpTo(ctx context.Context, bin string, primary, standby *node) error {
	if err := primary.exec(ctx, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	if err := w.database.renew(ctx, standby); err != nil {
		return err
	}
	if err := transfer(ctx, bin, primary, standby); err != nil {
		return err
	}
	return killTree(ctx, w.services.pid(primary.service))
}

// Rebase makes relays continue with a moved database.
func (w *World) Rebase(ctx context.Context) error {
	_, err := w.Postrider(ctx, "rebase", "--yes")
	return err
}

// closeDatabase resets all connections to the database and refuses new ones until the returned
// function is called; then they go to the primary.
func (w *World) closeDatabase() (open func()) {
	before := map[*proxy.Proxy]proxy.Behaviour{}
	for _, p := range w.databaseProxies() {
		before[p] = p.Behaviour()
		p.Behave(proxy.Behaviour{Refuse: true})
		p.Reset()
	}
	return func() {
		w.followPrimary()
		for p, b := range before {
			p.Behave(b)
		}
	}
}

// disconnect waits until no other client is connected.
func disconnect(ctx context.Context, n *node) error {
	return n.as(ctx, "postgres", func(conn *pgx.Conn) error {
		return within(ctx, 30*time.Second, 50*time.Millisecond, func() error {
			var others int
			err := conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others)
			if err == nil && others > 0 {
				err = fmt.Errorf("%d are still connected to the database", others)
			}
			return err
		})
	})
}

// clone replaces the database by a copy under the old name.
func clone(ctx context.Context, n *node) error {
	return n.as(ctx, "postgres", func(conn *pgx.Conn) error {
		for _, sql := range []string{
			"ALTER DATABASE postrider RENAME TO original",
			"CREATE DATABASE postrider TEMPLATE original STRATEGY = FILE_COPY",
			"DROP DATABASE original WITH (FORCE)",
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// renew makes a node a new, empty cluster.
func (d *database) renew(ctx context.Context, n *node) error {
	if err := killTree(ctx, d.services.pid(n.service)); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(n.dir, "data")), os.RemoveAll(filepath.Join(n.dir, "initialised"))); err != nil {
		return err
	}
	return d.create(ctx, n)
}

// transfer pipes a dump of the database into another server.
func transfer(ctx context.Context, bin string, from, to *node) error {
	dump := exec.CommandContext(ctx, filepath.Join(bin, "pg_dump"), "--no-owner", from.dsn("postrider", "dump"))
	restore := exec.CommandContext(ctx, filepath.Join(bin, "psql"), "--quiet", "--no-psqlrc", "--single-transaction", "--output", os.DevNull,
		"--set", "ON_ERROR_STOP=1", to.dsn("postrider", "restore"))
	pipe, err := dump.StdoutPipe()
	if err != nil {
		return err
	}
	restore.Stdin = pipe
	var said [2]limited
	dump.Stderr, restore.Stderr = &said[0], &said[1]
	if err := dump.Start(); err != nil {
		return err
	}
	if err := restore.Run(); err != nil {
		_ = dump.Process.Kill()
		return errors.Join(fmt.Errorf("psql: %w: %s", err, said[1].text), dump.Wait())
	}
	if err := dump.Wait(); err != nil {
		return fmt.Errorf("pg_dump: %w: %s", err, said[0].text)
	}
	return nil
}

// limited keeps the beginning of a program's output.
type limited struct{ text []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.text = append(l.text, p[:min(len(p), 2000-min(len(l.text), 2000))]...)
	return len(p), nil
}
