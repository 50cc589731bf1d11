package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/broker/stdout"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
)

// relayOptions are the flags of "postrider relay".
type relayOptions struct {
	relay.Config
	sink      string
	logFormat string
	logLevel  slog.Level
}

func (o *relayOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Feed, "feed", "default", "feed to serve; relays of one feed share its shards")
	flags.StringVar(&o.Name, "name", "", "name that operators see; default: host:pid")
	flags.StringVar(&o.sink, "sink", "discard", "where messages go: discard or stdout (one line of JSON each)")
	flags.DurationVar(&o.Lease, "lease", 10*time.Second, "how long the shards of a relay that has died stay with it")
	flags.IntVar(&o.BatchSize, "batch", 500, "most messages in one call of the sink")
	flags.IntVar(&o.ReadAhead, "read-ahead", 4000, "most messages of a shard that are read and not confirmed")
	flags.DurationVar(&o.PollMin, "poll-min", 5*time.Millisecond, "time between two reads while messages keep coming")
	flags.DurationVar(&o.PollMax, "poll-max", 50*time.Millisecond, "time between two reads of an idle relay")
	flags.DurationVar(&o.SettleInterval, "settle-interval", 50*time.Millisecond, "time between two records of progress")
	flags.DurationVar(&o.BalanceInterval, "balance-interval", time.Second, "time between two checks of the fair share of shards")
	flags.DurationVar(&o.PublishTimeout, "publish-timeout", 30*time.Second, "longest call of the sink")
	flags.DurationVar(&o.RetryMin, "retry-min", 100*time.Millisecond, "pause after a first failure; it doubles with each")
	flags.DurationVar(&o.RetryMax, "retry-max", 5*time.Second, "longest pause between two attempts")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 10*time.Second, "how long a stop waits for what is in flight")
	flags.DurationVar(&o.MaintainInterval, "maintain-interval", time.Minute, "time between two rounds of housekeeping")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json; --json means json")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
}

func (a *app) relayCommand() *cobra.Command {
	var o relayOptions
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Carry committed messages until stopped",
		Long: "Carries the messages of a feed to a sink until SIGINT or SIGTERM. It then finishes what is in flight and releases\n" +
			"its shards, so that the next relay goes on at once; a second signal ends it immediately. Outages do not end it.\n" +
			"The log goes to stderr.",
		Example: "  postrider relay --sink stdout | jq .type",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.relay(cmd.Context(), o)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (a *app) relay(ctx context.Context, o relayOptions) error {
	log, err := a.logger(o)
	if err != nil {
		return err
	}
	o.Logger = log
	sink, err := a.sink(o.sink)
	if err != nil {
		return err
	}
	pool, err := a.db.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := postgres.New(pool, a.db.store())
	if err != nil {
		return usageError{err}
	}
	r, err := relay.New(store, sink, o.Config)
	if err != nil {
		return usageError{err}
	}
	if err := checkSchema(ctx, store, o.Config); err != nil {
		return err
	}

	log.Info("relay: started", "feed", o.Feed, "sink", o.sink, "schema", a.db.schema)
	err = r.Run(ctx)
	logStats(log, r.Stats())
	return errors.Join(err, sink.Close())
}

// checkSchema ends a relay at the start whose tables are missing: that is a mistake, and waiting would hide it. Whatever
// else is wrong the relay itself waits for.
func checkSchema(ctx context.Context, store *postgres.Store, cfg relay.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	feed, err := store.Open(ctx, cfg.Feed, postrider.Member{Name: cfg.Name, Lease: cfg.Lease})
	if err == nil {
		_ = feed.Close(ctx) // has nothing to give back
	}
	if errors.Is(err, postrider.ErrSchema) {
		return err
	}
	return nil
}

func (a *app) sink(name string) (postrider.Publisher, error) {
	switch name {
	case "discard":
		return discard.New(), nil
	case "stdout":
		return stdout.New(a.out), nil
	}
	return nil, usagef("--sink is %q: want discard or stdout", name)
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

func logStats(log *slog.Logger, s relay.Stats) {
	log.Info("relay: stopped", "published", s.Published, "failed", s.Failed, "refused", s.Refused, "retried", s.Retried,
		"reads", s.Reads, "settles", s.Settles, "balances", s.Balances, "fenced", s.Fenced, "resets", s.Resets)
}
