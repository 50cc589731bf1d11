package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
)

// database holds the connection flags that are common to all commands.
type database struct {
	dsn    string
	schema string
	engine string         // as config.Database has it
	table  config.Table   // for the classic engine
	most   int64          // the maximum size of the log, in bytes
	home   string         // the name of its environment
	name   string         // in the configuration file; if empty, the other flags apply
	flags  *pflag.FlagSet // nil if it comes from a configuration file
}

// addFlags adds the connection flags to cmd and its subcommands.
func (d *database) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&d.dsn, "dsn", "", "database, as URL (postgres, mysql, mariadb) or key=value pairs; default: $POSTRIDER_DSN,\n"+
		"$DATABASE_URL or the PG* variables, which also keep a password out of the process list")
	flags.StringVar(&d.schema, "schema", "postrider", "schema that holds the log")
	flags.StringVar(&d.home, "home", "", "name of the database's environment, such as production; see: postrider rebase --help")
	flags.StringVar(&d.engine, "engine", "", "log, or classic: a table whose rows have a status; default: classic for MySQL and MariaDB, else log")
	flags.StringVar(&d.name, "database", "", "database of the configuration file ($POSTRIDER_CONFIG, ./"+defaultConfig+") instead of these")
	d.flags = flags
}

// choose replaces the database by that of the configuration file if --database names one.
func (d *database) choose(load func(path string) (*config.File, error)) error {
	if d.engine != "" && d.engine != config.EngineLog && d.engine != config.EngineClassic {
		return usagef("--engine is %q: want %s or %s", d.engine, config.EngineLog, config.EngineClassic)
	}
	if d.engine == config.EngineLog && d.isMySQL() {
		return usagef("--engine log needs PostgreSQL: MySQL and MariaDB have the classic engine")
	}
	if d.name == "" {
		return nil
	}
	for _, flag := range []string{"dsn", "schema", "engine", "home"} {
		if d.flags.Changed(flag) {
			return usagef("--database and --%s contradict each other: the file sets it in databases.%s", flag, d.name)
		}
	}
	path, _ := configPath("")
	f, err := load(path)
	if err != nil {
		return err
	}
	chosen, ok := f.Databases[d.name]
	if !ok {
		return usagef("%s has no database %q: there are %s", path, d.name, strings.Join(slices.Sorted(maps.Keys(f.Databases)), ", "))
	}
	*d = *fileDatabase(d.name, chosen)
	return nil
}

// address returns the address of the database. If it is empty, the driver uses the PG* variables.
func (d *database) address() string {
	return cmp.Or(d.dsn, os.Getenv("POSTRIDER_DSN"), os.Getenv("DATABASE_URL"))
}

// tryCommand returns a command that connects to the same database with the database's own client.
func (d *database) tryCommand() string {
	switch {
	case d.isMySQL():
		return "mariadb --host HOST --user USER --password DATABASE -e 'SELECT 1'"
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

// config parses the address of a log.
func (d *database) config() (*pgxpool.Config, error) {
	if err := d.needsLog(); err != nil {
		return nil, err
	}
	return d.pgConfig()
}

// pgConfig parses the address of a PostgreSQL database.
func (d *database) pgConfig() (*pgxpool.Config, error) {
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

// open returns a pool that works behind any pooler. It does not connect yet.
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

// store returns the configuration of the log.
func (d *database) store() postgres.Config {
	return postgres.Config{Schema: d.schema, MaxLogSize: d.most, Home: d.home, CommandFlags: strings.TrimSpace(d.commandFlags())}
}

// in inserts the schema's name into a statement.
func (d *database) in(sql string) string {
	return strings.ReplaceAll(sql, "@schema@", pgx.Identifier{d.schema}.Sanitize())
}

// explain adds [feeds.ErrSchema] to an error that only a missing schema can cause.
func (d *database) explain(err error) error {
	own := hasNumber(err, 1146) && strings.Contains(err.Error(), "postrider_") // undefined table of postrider
	if own || hasState(err, "42P01", "42883", "3F000") {                       // undefined table, function, schema
		return d.hintMigrate(fmt.Errorf("%w: schema %q: %w", feeds.ErrSchema, d.schema, err))
	}
	return err
}

// hintMigrate adds the command that creates or updates the schema.
func (d *database) hintMigrate(err error) error {
	return hintedError{err, "to create or update it: postrider migrate up" + d.commandFlags()}
}

// commandFlags returns the flags that make another command use this database, each after a space.
func (d *database) commandFlags() (line string) {
	if d.name != "" {
		return " --database " + phrase.ShellWord(d.name)
	}
	if d.engine == config.EngineClassic && !d.isMySQL() {
		line += " --engine classic"
	}
	if d.schema != "postrider" && d.schema != "" {
		line += " --schema " + d.schema
	}
	if d.home != "" {
		line += " --home " + phrase.ShellWord(d.home)
	}
	return line
}
