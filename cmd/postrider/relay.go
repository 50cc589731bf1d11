package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/config"
	"github.com/postrider/postrider/relay"
)

// relayOptions are the flags of "postrider relay".
type relayOptions struct {
	relay.Config
	file      string
	to        string
	set       []string
	feeds     []string
	logFormat string
	logLevel  slog.Level
}

func (o *relayOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "config", "", "file with databases, destinations and feeds; default: $POSTRIDER_CONFIG, ./"+defaultConfig)
	flags.StringVar(&o.to, "to", "", "URL that all messages go to, without a file: nats://host, stdout:, discard:, …\n"+
		"(\"postrider brokers\" lists them)")
	flags.StringArrayVar(&o.set, "set", nil, "option=value for the destination of --to; may be repeated")
	flags.StringSliceVar(&o.feeds, "feed", nil, "feed to serve; relays of one feed share its shards. Default: all feeds of the\n"+
		"file; with --to: default")
	flags.StringVar(&o.Name, "name", "", "name that operators see; default: host:pid")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json; --json means json")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")

	flags.DurationVar(&o.Lease, "lease", 10*time.Second, "how long the shards of a relay that has died stay with it")
	flags.IntVar(&o.BatchSize, "batch", 500, "most messages in one call of the destination")
	flags.IntVar(&o.ReadAhead, "read-ahead", 4000, "most messages of a shard that are read and not confirmed")
	flags.DurationVar(&o.PollMin, "poll-min", 5*time.Millisecond, "time between two reads while messages keep coming")
	flags.DurationVar(&o.PollMax, "poll-max", 50*time.Millisecond, "time between two reads of an idle relay")
	flags.DurationVar(&o.SettleInterval, "settle-interval", 50*time.Millisecond, "time between two records of progress")
	flags.DurationVar(&o.BalanceInterval, "balance-interval", time.Second, "time between two checks of the fair share of shards")
	flags.DurationVar(&o.PublishTimeout, "publish-timeout", 30*time.Second, "longest call of the destination")
	flags.DurationVar(&o.RetryMin, "retry-min", 100*time.Millisecond, "pause after a first failure; it doubles with each")
	flags.DurationVar(&o.RetryMax, "retry-max", 2*time.Second, "longest pause between two attempts")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 10*time.Second, "how long a stop waits for what is in flight")
	flags.DurationVar(&o.MaintainInterval, "maintain-interval", time.Minute, "time between two rounds of housekeeping")
}

// inFile says where a file has what a flag says. These flags go with --to only.
var inFile = map[string]string{
	"dsn":    "databases.NAME.url",
	"schema": "databases.NAME.schema",
	"lease":  "feeds.NAME.relay.lease", "batch": "feeds.NAME.relay.batch", "read-ahead": "feeds.NAME.relay.read_ahead",
	"poll-min": "feeds.NAME.relay.poll_min", "poll-max": "feeds.NAME.relay.poll_max",
	"settle-interval": "feeds.NAME.relay.settle_interval", "balance-interval": "feeds.NAME.relay.balance_interval",
	"publish-timeout": "feeds.NAME.relay.publish_timeout", "retry-min": "feeds.NAME.relay.retry_min",
	"retry-max": "feeds.NAME.relay.retry_max", "drain-timeout": "feeds.NAME.relay.drain_timeout",
	"maintain-interval": "feeds.NAME.relay.maintain_interval",
}

func (a *app) relayCommand() *cobra.Command {
	var o relayOptions
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Carry committed messages until stopped",
		Long: "Carries messages to a broker until SIGINT or SIGTERM: those of the feeds in a configuration file, or those of one\n" +
			"feed to the URL given with --to. When stopped it finishes what is in flight and releases its shards, so that the\n" +
			"next relay goes on at once; a second signal ends it immediately. Outages do not end it. The log goes to stderr.",
		Example: "  postrider relay --to stdout: | jq .type\n" +
			"  postrider relay --to nats://localhost:4222 --set format=raw\n" +
			"  postrider relay --config postrider.yaml --feed default,audit",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger(o)
			if err != nil {
				return err
			}
			o.Logger = log
			if o.to != "" {
				return a.relayToURL(cmd.Context(), o)
			}
			return a.relayFile(cmd, o)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// relayToURL serves one feed of the database that the flags name.
func (a *app) relayToURL(ctx context.Context, o relayOptions) error {
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
	options, err := parseSet(o.set)
	if err != nil {
		return err
	}
	d := config.Destination{URL: o.to, Broker: options["broker"], Options: options}
	delete(options, "broker")
	pub, err := a.openDestination(d, o.Logger)
	if err != nil {
		if _, known := broker.Lookup(o.to); known == nil {
			return hintedError{usageError{err}, "did you mean: --to " + o.to + ":"}
		}
		return hintedError{usageError{err}, "for the brokers and their options: postrider brokers"}
	}
	to := []openDestination{{name: config.RedactURL(o.to), pub: pub}}
	return a.serve(ctx, o.Logger, to, []servedFeed{{db: &a.db, pub: pub, cfg: o.Config, to: to[0].name}})
}

// parseSet reads the values of --set.
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

// relayFile serves the feeds of a file, or those of them that --feed names.
func (a *app) relayFile(cmd *cobra.Command, o relayOptions) error {
	path, said := configPath(o.file)
	if _, err := os.Stat(path); !said && errors.Is(err, os.ErrNotExist) {
		return hintedError{usagef("where to? neither --to nor --config is given, and there is no %s", defaultConfig),
			"to look at the messages: postrider relay --to stdout:"}
	}
	if len(o.set) > 0 {
		return usagef("--set %s and --config contradict each other: the file %s has options beside each destination's url", o.set[0], path)
	}
	var errs []error
	for _, flag := range slices.Sorted(maps.Keys(inFile)) {
		if cmd.Flags().Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s and --config contradict each other: the file %s says it as %s", flag, path, inFile[flag]))
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
	destinations, feeds, err := a.openFeeds(f, o)
	if err != nil {
		return err
	}
	return a.serve(cmd.Context(), o.Logger, destinations, feeds)
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
