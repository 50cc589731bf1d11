package cli

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

// relayOptions holds the flags of "postrider relay".
type relayOptions struct {
	relay.Config
	file      string
	to        string
	set       []string
	feeds     []string
	health    string
	console   string
	create    bool
	from      string
	force     bool
	logFormat string
	logLevel  slog.Level
	tracing   *tracing     // not a flag: configured by the environment
	origin    feeds.Origin // the parsed value of from
}

// parseFrom parses --from, which requires --create and a feed.
func (o *relayOptions) parseFrom() (feeds.Origin, error) {
	switch {
	case !o.create && o.from != "":
		return feeds.Origin{}, usagef("--from is for a new feed: add --create")
	case o.create && o.from == "":
		return feeds.Origin{}, usagef("--create needs the position where the new feed begins: add --from now, --from oldest or --from TIME")
	case o.create && len(o.feeds) == 0:
		return feeds.Origin{}, usagef("--create needs the name of the feed: add --feed NAME")
	case !o.create:
		return feeds.Origin{}, nil
	}
	origin, err := config.ParseOrigin(o.from)
	if err != nil {
		return origin, usagef("--from: %w", err)
	}
	return origin, nil
}

func (o *relayOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.file, "config", "", "file with databases, destinations and feeds; default: $POSTRIDER_CONFIG, ./"+defaultConfig)
	flags.StringVar(&o.to, "to", "", "URL that all messages go to, without a file: nats://host, stdout:, discard:, …\n"+
		"(\"postrider brokers\" lists them)")
	flags.StringArrayVar(&o.set, "set", nil, "option=value for the destination of --to; may be repeated")
	flags.StringSliceVar(&o.feeds, "feed", nil, "feed to serve; relays of one feed share its shards. Default: all feeds of the\n"+
		"file; with --to: default")
	flags.BoolVar(&o.create, "create", false, "create the feed that --feed names, if it does not exist; --from says where it begins")
	flags.StringVar(&o.from, "from", "", "where a feed that is created begins: now, oldest or an RFC 3339 time")
	flags.BoolVar(&o.force, "force", false, "serve the feed although its relays have sent to another destination")
	flags.StringVar(&o.Name, "name", "", "name that operators see; default: host:pid")
	flags.StringVar(&o.health, "health", "", "host and port for /livez, /readyz and /metrics, such as 127.0.0.1:8710; default: none")
	flags.StringVar(&o.console, "console", "", "host and port for the web console, such as "+defaultConsole+"; default: none")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json; --json means json")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")

	defaults := relay.Config{}.WithDefaults()
	flags.DurationVar(&o.Lease, "lease", defaults.Lease, "how long a relay that has died keeps its shards")
	flags.IntVar(&o.BatchSize, "batch", defaults.BatchSize, "most messages in one call of the destination")
	flags.IntVar(&o.Memory, "memory", defaults.Memory, "about how many bytes of messages are held")
	flags.IntVar(&o.ReadAhead, "read-ahead", defaults.ReadAhead, "most messages of a shard that are read and not confirmed")
	flags.DurationVar(&o.PollMin, "poll-min", defaults.PollMin, "time between two reads while messages keep coming")
	flags.DurationVar(&o.PollMax, "poll-max", defaults.PollMax, "time between two reads of an idle relay")
	flags.DurationVar(&o.SettleInterval, "settle-interval", defaults.SettleInterval, "time between two records of progress")
	flags.DurationVar(&o.BalanceInterval, "balance-interval", defaults.BalanceInterval, "time between two checks of the fair share of shards")
	flags.DurationVar(&o.PublishTimeout, "publish-timeout", defaults.PublishTimeout, "longest call of the destination")
	flags.DurationVar(&o.Outage.First, "outage-first", defaults.Outage.First, "backoff after the first failure that no message has caused; doubles with each further one")
	flags.DurationVar(&o.Outage.Most, "outage-most", defaults.Outage.Most, "longest such backoff")
	flags.StringVar(&o.Order, "order", defaults.Order, "strict: later messages of a key wait for one that fails; skip: they overtake it")
	flags.IntVar(&o.Retry.Attempts, "retry-attempts", defaults.Retry.Attempts, "attempts of a message that fails for a reason of its own")
	flags.DurationVar(&o.Retry.First, "retry-first", defaults.Retry.First, "backoff of such a message after the first attempt; doubles with each further one")
	flags.DurationVar(&o.Retry.Most, "retry-most", defaults.Retry.Most, "longest backoff between two such attempts")
	flags.DurationSliceVar(&o.Retry.Pauses, "retry-pauses", nil, "the backoffs of such a message one by one, instead of first and most")
	flags.DurationVar(&o.Retry.MaxAge, "retry-max-age", 0, "how long after its first failure such a message is still retried; 0: no limit")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", defaults.DrainTimeout, "how long a stop waits for what is in flight")
	flags.DurationVar(&o.Canary, "canary", 5*time.Second, "time between two canaries, which prove that messages would arrive; 0: none")
	flags.DurationVar(&o.MaintainInterval, "maintain-interval", defaults.MaintainInterval, "time between two rounds of housekeeping")
}

// inFile maps each flag that requires --to to its key in a configuration file.
var inFile = map[string]string{
	"dsn":      "databases.NAME.url",
	"schema":   "databases.NAME.schema",
	"engine":   "databases.NAME.engine",
	"database": "feeds.NAME.database",
	"lease":    "feeds.NAME.relay.lease", "batch": "feeds.NAME.relay.batch", "read-ahead": "feeds.NAME.relay.read_ahead",
	"memory":   "feeds.NAME.relay.memory",
	"poll-min": "feeds.NAME.relay.poll_min", "poll-max": "feeds.NAME.relay.poll_max",
	"settle-interval": "feeds.NAME.relay.settle_interval", "balance-interval": "feeds.NAME.relay.balance_interval",
	"publish-timeout": "feeds.NAME.relay.publish_timeout", "outage-first": "feeds.NAME.relay.outage.first",
	"outage-most": "feeds.NAME.relay.outage.most", "drain-timeout": "feeds.NAME.relay.drain_timeout",
	"maintain-interval": "feeds.NAME.relay.maintain_interval", "order": "feeds.NAME.order",
	"retry-attempts": "feeds.NAME.relay.retry.attempts", "retry-first": "feeds.NAME.relay.retry.first",
	"canary":     "feeds.NAME.relay.canary",
	"retry-most": "feeds.NAME.relay.retry.most", "retry-pauses": "feeds.NAME.relay.retry.pauses",
	"retry-max-age": "feeds.NAME.relay.retry.max_age",
}
