package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
)

func (a *app) relayCommand() *cobra.Command {
	var o relayOptions
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Run a relay until stopped",
		Long: "Delivers messages to a broker until SIGINT or SIGTERM: those of the feeds in a configuration file, or those of one\n" +
			"feed to the URL given with --to. When stopped it finishes what is in flight and releases its shards, so that the\n" +
			"next relay continues at once; a second signal ends it immediately. Outages do not end it. SIGHUP makes it read the\n" +
			"routes of its file again. The log goes to stderr.\n\n" +
			"The first feed of a log is created automatically. Any other must exist, or be created with --create: otherwise a\n" +
			"mistyped name would send the whole log again. A feed records the scheme and host that its messages go to. A relay that\n" +
			"would send them elsewhere is refused, unless --force is given.",
		Example: "  postrider relay --to stdout: | jq .type\n" +
			"  postrider relay --to nats://localhost:4222 --set format=raw\n" +
			"  postrider relay --config postrider.yaml --feed default,audit\n" +
			"  postrider relay --to nats://localhost:4222 --feed audit --create --from now",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger(o)
			if err != nil {
				return err
			}
			o.Logger = log
			env, err := relay.ReadEnvironment()
			if err != nil {
				return usageError{err}
			}
			if !env.Enabled {
				log.Info("relay: not started", "because", "INTEV_ENABLED is "+os.Getenv("INTEV_ENABLED"))
				return nil
			}
			if o.tracing, err = newTracing(cmd.Context()); err != nil {
				return usagef("OTEL_*: %w", err)
			}
			if o.origin, err = o.parseFrom(); err != nil {
				return err
			}
			if o.to != "" {
				err = a.relayToURL(cmd, o, env)
			} else {
				err = a.relayFile(cmd, o, env)
			}
			return errors.Join(err, o.tracing.close())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// relayToURL serves one feed of the database of the flags.
func (a *app) relayToURL(cmd *cobra.Command, o relayOptions, env *relay.Environment) error {
	if o.file != "" {
		return usagef("--to and --config contradict each other: the file %s names the destinations itself", o.file)
	}
	if len(o.feeds) > 1 {
		return usagef("--feed names %q, but --to serves one feed: several need --config", o.feeds)
	}
	o.Feed = strings.Join(o.feeds, "")
	if o.Feed == "" {
		o.Feed = "default"
	}
	if err := refuseConsumer(o.Feed); err != nil {
		return err
	}
	said := func(key string) bool { return cmd.Flags().Changed(strings.ReplaceAll(key, "_", "-")) }
	if said("retry_pauses") {
		if said("retry_first") || said("retry_most") {
			return usagef("--retry-pauses and --retry-first or --retry-most contradict each other: a list sets every pause")
		}
		o.Retry.First, o.Retry.Most = 0, 0
		if !said("retry_attempts") {
			o.Retry.Attempts = 0
		}
	}
	env.Overlay(&o.Config, said)
	listen := config.Health{Listen: o.health}
	if err := listen.Validate(); err != nil {
		return usagef("--health: %w", err)
	}
	shown := config.Console{Listen: o.console}
	if err := shown.Validate(); err != nil {
		return usagef("--console: %w", err)
	}
	options, err := parseSet(o.set)
	if err != nil {
		return err
	}
	d := config.Destination{URL: o.to, Broker: options["broker"], Options: options}
	delete(options, "broker")
	s := &service{log: o.Logger, health: listen, console: shown, tracing: o.tracing}
	to, err := a.openTraced(s, config.RedactURL(o.to), d)
	if err != nil {
		if driver, known := broker.Lookup(o.to); known == nil {
			return hintedError{usageError{err}, "did you mean: --to " + driver.Example}
		}
		return hintedError{usageError{err}, "for the brokers and their options: postrider brokers"}
	}
	s.destinations = []*openDestination{to}
	s.databases = []logDatabase{a.flagDatabase()}
	o.Create, o.From, o.Destination, o.Force = o.create, o.origin, config.Where(o.to), o.force
	s.feeds = []servedFeed{{
		database: s.databases[0].name, db: &a.db, pool: &servedPool{db: &a.db, most: poolSize},
		pub: to.of(o.Feed), cfg: o.Config, to: s.destinations,
	}}
	return a.serve(cmd.Context(), s)
}

// parseSet parses the values of --set.
func parseSet(set []string) (map[string]string, error) {
	options := make(map[string]string, len(set))
	for _, pair := range set {
		option, value, ok := strings.Cut(pair, "=")
		if !ok || option == "" {
			return nil, usagef("--set is %q: want option=value", pair)
		}
		options[option] = value
	}
	return options, nil
}

// relayFile serves the feeds of a file, or those that --feed names.
func (a *app) relayFile(cmd *cobra.Command, o relayOptions, env *relay.Environment) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	path, said := configPath(o.file)
	if _, err := os.Stat(path); !said && errors.Is(err, os.ErrNotExist) {
		return hintedError{usagef("no destination: neither --to nor --config is set, and there is no %s", defaultConfig),
			"to look at the messages: " + a.next("messages tail")}
	}
	if len(o.set) > 0 {
		return usagef("--set %s and --config contradict each other: the file %s has options beside each destination's url", o.set[0], path)
	}
	var errs []error
	for _, flag := range slices.Sorted(maps.Keys(inFile)) {
		if cmd.Flags().Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s and --config contradict each other: the file %s sets it in %s", flag, path, inFile[flag]))
		}
	}
	if len(errs) > 0 {
		return usageError{errors.Join(errs...)}
	}
	f, err := a.useConfig(path, false)
	if err != nil {
		return err
	}
	for _, w := range f.Warnings() {
		o.Logger.Warn("relay: configuration", "file", path, "line", w.Line, "path", w.Path, "warning", w.Message)
	}
	used, err := fillFile(env, f)
	if err != nil {
		return err
	}
	used.Health.Listen = cmp.Or(o.health, f.Health.Listen)
	if err := used.Health.Validate(); err != nil {
		return usagef("--health: %w", err)
	}
	used.Console.Listen = cmp.Or(o.console, f.Console.Listen)
	if err := used.Console.Validate(); err != nil {
		return usagef("--console: %w", err)
	}
	s, err := a.openFeeds(used, o)
	if err != nil {
		return err
	}
	if s.databases, err = fileDatabases(f); err != nil {
		return errors.Join(err, s.close())
	}
	s.reload = &reloader{path: path, file: f, signals: signals}
	if len(used.Reconcilers) > 0 {
		names := slices.Sorted(maps.Keys(used.Reconcilers))
		if s.reconciler, err = a.openReconcilers(cmd.Context(), used, names, cmp.Or(o.Name, actor()), o.Logger); err != nil {
			return errors.Join(err, s.close())
		}
	}
	return a.serve(cmd.Context(), s)
}

func (a *app) logger(o relayOptions) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: o.logLevel}
	switch {
	case o.logFormat == "json" || a.asJSON && o.logFormat == "text":
		return slog.New(slog.NewJSONHandler(a.err, options)), nil
	case o.logFormat == "text":
		return slog.New(slog.NewTextHandler(a.err, options)), nil
	}
	return nil, usagef("--log-format is %q: want text or json", o.logFormat)
}
