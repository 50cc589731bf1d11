package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/cmd/postrider/internal/bench"
)

func (a *app) benchScaleCommand() *cobra.Command {
	o := bench.Options{Rate: 1, Databases: 1, Payload: 1024, Shards: 8}
	plan := bench.ScalePlan{Build: currentBuild().Version}
	var seconds int
	var brokers []string
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure what messages cost, by layout",
		Long: "Measures processor time of the server and of relays, WAL, statements, connections and memory: by the size of messages, the\n" +
			"number of shards, relays, feeds and databases, at full load, at steady rates and idle, each beside the same producers without\n" +
			"a relay. Relays are processes of their own, and discard what they get; with --broker they also send it to real ones. The\n" +
			"output of --json is what \"postrider plan --constants\" computes with.\n\n" +
			"It must run on the server's own machine (Linux), and no other client may use the server meanwhile: WAL and processor time are the whole\n" +
			"server's. It creates and removes databases of its own. With the defaults it takes about a quarter of an hour.",
		Example: "  postrider bench scale --quick\n" +
			"  postrider bench scale --broker nats,kafka --json > constants.json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if plan.Quick {
				for flag, set := range map[string]func(){
					"seconds": func() { seconds = 1 }, "rounds": func() { o.Rounds = 1 }, "messages": func() { o.Messages = 200_000 },
				} {
					if !cmd.Flags().Changed(flag) {
						set()
					}
				}
			}
			o.Phase = time.Duration(seconds) * time.Second
			var err error
			if plan.Brokers, err = scaleBrokers(brokers); err != nil {
				return err
			}
			plan.Command = scaleCommandLine(cmd)
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			s := scenario{name: "scale", run: measured(func(ctx context.Context, l *bench.Lab) (bench.ScaleResult, error) {
				return bench.Scale(ctx, l, plan)
			})}
			return a.measure(cmd.Context(), s, o, false)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&plan.Quick, "quick", false, "a few layouts, for a second each, to see that it works: not to plan with")
	flags.IntVar(&seconds, "seconds", 3, "length of each phase")
	flags.IntVar(&o.Rounds, "rounds", 3, "how often each layout is measured; the median counts")
	flags.IntVar(&o.Writers, "writers", 16, "producers at work at the same time")
	flags.IntVar(&o.Messages, "messages", 500_000, "size of the backlog that a relay drains")
	flags.IntVar(&plan.Databases, "databases", 50, "most databases in the server")
	flags.StringSliceVar(&brokers, "broker", nil, "brokers to send to as well, each at $POSTRIDER_<BROKER>_URL; \"postrider brokers\" lists them")
	return cmd
}

// scaleBrokers returns the drivers and settings of the named brokers.
func scaleBrokers(names []string) (found []bench.ScaleBroker, err error) {
	for _, name := range names {
		driver, settings, err := (&benchTarget{name: name}).find()
		if err != nil {
			return nil, err
		}
		found = append(found, bench.ScaleBroker{Driver: driver, Settings: *settings})
	}
	return found, nil
}

// scaleCommandLine returns the command that repeats the run.
func scaleCommandLine(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case cmd.InheritedFlags().Lookup(f.Name) != nil: // connection flags do not affect the result
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name+" "+strings.Trim(f.Value.String(), "[]"))
		}
	})
	return strings.Join(append(words, "--json"), " ")
}
