package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/cmd/postrider/internal/bench"
)

// scenario is one benchmark, with its flags and defaults.
type scenario struct {
	name, short, long string
	run               func(context.Context, *bench.Lab) (bench.Result, error)
	defaults          bench.Options
	silent            bool                                 // there are no producers
	turns             bool                                 // rounds are turns within a phase
	more              func(*pflag.FlagSet, *bench.Options) // additional flags
}

// measured adapts a benchmark with its own result type.
func measured[R bench.Result](run func(context.Context, *bench.Lab) (R, error)) func(context.Context, *bench.Lab) (bench.Result, error) {
	return func(ctx context.Context, l *bench.Lab) (bench.Result, error) { return run(ctx, l) }
}

var scenarios = []scenario{
	{
		name:  "overhead",
		short: "what a relay costs the producers",
		long: "Producers at full load: each transaction with a business row alone, with a business row and a message, and the same\n" +
			"beside a relay, in turn. The rates are medians, the latencies run from commit to confirmation by the sink.",
		run:      measured(bench.Overhead),
		defaults: bench.Options{Phase: 10 * time.Second, Rounds: 3},
	},
	{
		name:  "enqueue",
		short: "what a message adds to a transaction",
		long: "Transactions with a business row alone, with one message in a plain table that has an index of what is not published, with\n" +
			"1, 10 and 100 messages of one Enqueue, with the SQL function and with a plain INSERT into the log; and some of these in one round trip.\n" +
			"All variants have short turns, in another order each round: first with one writer, which counts processor time, round trips and\n" +
			"WAL, then with --writers. Of these costs the least third of the turns counts, because others' work only adds to them; of the rates the\n" +
			"median. The server's processor time is left out if the server runs elsewhere. Others' writes are in the WAL: a busy server shows too much.",
		run:      measured(bench.Enqueue),
		defaults: bench.Options{Phase: time.Minute, Rounds: 1000},
		turns:    true,
		more: func(flags *pflag.FlagSet, o *bench.Options) {
			flags.StringVar(&o.SynchronousCommit, "synchronous-commit", "", "setting of the measured connections; default: the server's")
		},
	},
	{
		name:  "drain",
		short: "how fast a backlog is delivered",
		long: "A backlog through a sink that discards it, beside a bare SELECT of the same columns of the same rows.\n" +
			"Each round delivers all of it to a new feed.",
		run:      measured(bench.Drain),
		defaults: bench.Options{Messages: 1_000_000, Rounds: 3},
	},
	{
		name:  "held-xmin",
		short: "what an old open transaction costs",
		long: "Producers at full load beside a relay, without and with an old REPEATABLE READ transaction that keeps vacuum\n" +
			"from removing anything. The rates count delivered messages.",
		run:      measured(bench.HeldXmin),
		defaults: bench.Options{Phase: 60 * time.Second, Rounds: 1},
	},
	{
		name:     "latency",
		short:    "the time from commit to confirmation",
		long:     "Producers at a steady rate; the time from the return of each commit to the confirmation by the sink.",
		run:      measured(bench.Latency),
		defaults: bench.Options{Phase: 30 * time.Second, Rate: 1000},
	},
	{
		name:  "backlog",
		short: "whether a message costs more while many wait",
		long: "The cost of reading and settling the first 10,000 messages of a new feed while 10 thousand, 100 thousand,\n" +
			"1 million and --messages of them wait, and then all of them to the end.",
		run:      measured(bench.Backlog),
		defaults: bench.Options{Messages: 5_000_000},
	},
	{
		name:  "idle",
		short: "what relays cost that have nothing to do",
		long: "Creates --databases databases, each with a log, and runs a relay for each in this process: without relays, with them, and without. The\n" +
			"processor time of the server is that of the relays' sessions, and what its own processes, such as the checkpointer, use above a phase\n" +
			"without relays; it is left out if the server runs elsewhere. Statements are those of pg_stat_statements, or\n" +
			"transactions where that extension is missing; round trips are counted at the relays' connections. Relays do their housekeeping once a\n" +
			"minute: a shorter phase may miss it. The databases are removed at the end, also after Ctrl-C.",
		run:      measured(bench.Idle),
		defaults: bench.Options{Phase: time.Minute, Rounds: 1, Databases: 1},
		silent:   true,
		more: func(flags *pflag.FlagSet, o *bench.Options) {
			flags.DurationVar(&o.Canary, "canary", 5*time.Second, "time between two canaries of a relay, as of \"postrider relay\"; 0: none")
		},
	},
	{
		name:  "telemetry",
		short: "what metrics and traces cost",
		long: "Producers at full load beside a relay, in turn without telemetry, with that of a daemon (metrics, gauges, a scrape\n" +
			"each second) and with that of producers too (one transaction in a hundred is traced, and each message carries\n" +
			"its context). The rates are medians.",
		run:      measured(bench.Telemetry),
		defaults: bench.Options{Phase: 5 * time.Second, Rounds: 9},
	},
	{
		name:  "engines",
		short: "the log beside the classic engine",
		long: "Both engines in turn on the same server, and the classic one also on a MySQL or MariaDB server if --mysql names one:\n" +
			"producers at full load without a relay, beside one, and beside one and an old open transaction, and then a backlog of\n" +
			"--messages. The rates are medians, the latencies run from commit to confirmation by the sink.",
		run:      measured(bench.Engines),
		defaults: bench.Options{Phase: 20 * time.Second, Rounds: 1, Messages: 200_000},
		more: func(flags *pflag.FlagSet, o *bench.Options) {
			flags.StringVar(&o.MySQL, "mysql", "", "address of a MySQL or MariaDB server to measure as well, such as mysql://user@host/database")
		},
	},
	{
		name:  "consume",
		short: "what the inbox costs a handler",
		long: "Handlers that update a row for each message, one in a transaction and in batches: without the inbox and with\n" +
			"it, in turn. The rates are medians.",
		run:      measured(bench.Consume),
		defaults: bench.Options{Phase: 5 * time.Second, Rounds: 5},
		more: func(flags *pflag.FlagSet, o *bench.Options) {
			flags.IntVar(&o.Received, "received", 0, "measure again when so many messages have been received before")
		},
	},
}

// rounds returns the usage text of --rounds.
func (s scenario) rounds() string {
	if s.turns {
		return "turns of each variant in a phase"
	}
	return "how often each side is measured; the median counts"
}

func (a *app) benchCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "bench",
		Short: "Measure producers and relays on your own server",
		Long: "Measures Postrider on your own server, in a schema of its own that is removed at the end, also after Ctrl-C.\n" +
			"The load is real: do not point it at a database that others depend on.",
		Example: "  postrider bench overhead --seconds 10\n" +
			"  postrider bench enqueue\n" +
			"  postrider bench drain --messages 1000000 --json",
	})
	for _, s := range scenarios {
		cmd.AddCommand(a.scenarioCommand(s))
	}
	cmd.AddCommand(a.benchBrokerCommand(), a.benchScaleCommand(), a.benchSoakCommand())
	return cmd
}

func (a *app) scenarioCommand(s scenario) *cobra.Command {
	o := s.defaults
	var seconds int
	var keep bool
	cmd := &cobra.Command{
		Use:   s.name,
		Short: "Measure " + s.short,
		Long:  s.long,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Phase = time.Duration(seconds) * time.Second
			return a.measure(cmd.Context(), s, o, keep)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Payload, "payload", 256, "bytes of each message's payload")
	flags.IntVar(&o.Shards, "shards", 8, "shards of the log")
	flags.BoolVar(&keep, "keep", false, "do not remove the schema at the end")
	if s.defaults.Phase > 0 {
		flags.IntVar(&seconds, "seconds", int(s.defaults.Phase/time.Second), "length of each phase")
	} else {
		flags.IntVar(&seconds, "seconds", 0, "measure more rounds until so much time has passed")
	}
	if s.defaults.Phase > 0 && !s.silent {
		flags.IntVar(&o.Writers, "writers", 16, "producers at work at the same time")
	} else {
		o.Writers = 1
	}
	option := func(target *int, name, usage string) {
		if *target > 0 {
			flags.IntVar(target, name, *target, usage)
		} else {
			*target = 1 // not used by this scenario
		}
	}
	option(&o.Messages, "messages", "size of the backlog")
	option(&o.Rate, "rate", "messages a second")
	option(&o.Databases, "databases", "databases, each with a relay")
	option(&o.Rounds, "rounds", s.rounds())
	if s.more != nil {
		s.more(flags, &o)
	}
	return cmd
}

// measure runs a scenario in a schema of its own.
func (a *app) measure(ctx context.Context, s scenario, o bench.Options, keep bool) error {
	config, err := a.db.config()
	if err != nil {
		return err
	}
	o.Progress = a.progress
	o.Logger = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := o.Validate(); err != nil {
		return usageError{err}
	}
	lab, err := bench.Open(ctx, config, o)
	if err != nil {
		return err
	}
	result, err := s.run(ctx, lab)
	a.leave(ctx, lab, keep)
	if ctx.Err() != nil {
		return ctx.Err() // after an interrupt, other errors are consequences
	}
	if err != nil {
		return err
	}
	if a.asJSON {
		return a.json(result)
	}
	a.notef("%s on PostgreSQL %s, %d shards, payloads of %d bytes", s.name, lab.Server, o.Shards, o.Payload)
	return a.table(result.Table())
}

// leave removes the schema, or keeps it if keep is set. A failure to remove it does not fail the
// benchmark.
func (a *app) leave(ctx context.Context, lab *bench.Lab, keep bool) {
	var err error
	if keep {
		lab.Leave()
	} else {
		err = lab.Close(ctx)
	}
	a.progress("")
	if err != nil {
		a.notef("%v", err)
	}
	if keep || err != nil {
		a.notef("to remove the schema: DROP SCHEMA %s CASCADE", lab.Schema())
	}
}
