package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

// database is what the flags of every command that needs one say about it.
type database struct {
	dsn    string
	schema string
}

// addFlags gives cmd, and the commands below it, the flags that lead to the database.
func (d *database) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&d.dsn, "dsn", "", "database, as URL or key=value pairs; default: $POSTRIDER_DSN, $DATABASE_URL or\n"+
		"the PG* variables, which also keep a password out of the process list")
	flags.StringVar(&d.schema, "schema", "postrider", "schema that holds the log")
}

// address finds the database's address. An empty one makes the driver use the PG* variables.
func (d *database) address() string {
	return cmp.Or(d.dsn, os.Getenv("POSTRIDER_DSN"), os.Getenv("DATABASE_URL"))
}

// tryCommand connects to the same database with PostgreSQL's own client.
func (d *database) tryCommand() string {
	switch {
	case d.dsn != "":
		return "psql 'ADDRESS' -c 'SELECT 1', with the address from --dsn"
	case os.Getenv("POSTRIDER_DSN") != "":
		return `psql "$POSTRIDER_DSN" -c 'SELECT 1'`
	case os.Getenv("DATABASE_URL") != "":
		return `psql "$DATABASE_URL" -c 'SELECT 1'`
	}
	return "psql -c 'SELECT 1'"
}

const (
	poolSize       = 4 // a relay keeps at most three connections busy
	connectTimeout = 10 * time.Second
)

// config reads the address.
func (d *database) config() (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(d.address())
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = poolSize
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "postrider"
	}
	return cfg, nil
}

// open returns a pool that works through any pooler. It connects only when it is used.
func (d *database) open(ctx context.Context) (*pgxpool.Pool, error) {
	cfg, err := d.config()
	if err != nil {
		return nil, err
	}
	return d.openWith(ctx, cfg)
}

func (d *database) openWith(ctx context.Context, cfg *pgxpool.Config) (*pgxpool.Pool, error) {
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgxpool.NewWithConfig(ctx, cfg)
}

// store names the log to the packages that work with it.
func (d *database) store() postgres.Config { return postgres.Config{Schema: d.schema} }

// in puts the schema's name into a statement.
func (d *database) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", pgx.Identifier{d.schema}.Sanitize())
}

// explain makes an error that only a missing schema can cause say so.
func (d *database) explain(err error) error {
	if hasState(err, "42P01", "42883", "3F000") { // undefined table, function, schema
		return d.hintMigrate(fmt.Errorf("%w: schema %q: %w", postrider.ErrSchema, d.schema, err))
	}
	return err
}

// hintMigrate adds the command that repairs a schema that is missing or too old.
func (d *database) hintMigrate(err error) error {
	return hintedError{err, "to lay it out: postrider migrate up --schema " + d.schema}
}
