package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	perDatabase = 2  // minimum number of connections of a relay
	spare       = 10 // connections that are left to other clients
)

// databases are the databases that a run creates on the lab's server, each with a lab of its own.
type databases struct {
	lab  *Lab
	open func(context.Context, *pgxpool.Config) (*Lab, error) // creates the log
	labs []*Lab
}

// grow creates databases until there are count.
func (d *databases) grow(ctx context.Context, count int) error {
	for n := len(d.labs); n < count; n++ {
		name := fmt.Sprintf("postrider_bench_%d_%d", os.Getpid(), n+1)
		d.lab.progressf("creating database %d of %d", n+1, count)
		if err := d.create(ctx, name); err != nil {
			return err
		}
		config := d.lab.config.Copy()
		config.ConnConfig.Database = name
		lab, err := d.open(ctx, config)
		if err != nil {
			return errors.Join(err, d.dropOne(ctx, name))
		}
		d.labs = append(d.labs, lab)
	}
	return nil
}

// create creates a database. It ignores an interrupt: otherwise the server might complete it after
// this process has exited, and the database would stay.
func (d *databases) create(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := d.lab.admin.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return err
}

// drop removes all databases, also if ctx has ended.
func (d *databases) drop(ctx context.Context) error {
	var errs []error
	for i, lab := range d.labs {
		d.lab.progressf("removing database %d of %d", i+1, len(d.labs))
		lab.Leave()
		errs = append(errs, d.dropOne(ctx, lab.config.ConnConfig.Database))
	}
	return errors.Join(errs...)
}

func (d *databases) dropOne(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := d.lab.admin.Exec(ctx, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("bench: database %s was not removed: %w", name, err)
	}
	return nil
}

// free returns how many connections the server has left for the run, in addition to those that stay
// open.
func (d *databases) free(ctx context.Context) (n int, err error) {
	err = d.lab.admin.QueryRow(ctx, `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
		- (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name NOT LIKE 'postrider-bench%')
		- $1::int`, len(d.labs)+2).Scan(&n)
	return n, err
}

// mayNot reports whether the user lacks the right to create databases.
func mayNot(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "42501" // insufficient_privilege
}
