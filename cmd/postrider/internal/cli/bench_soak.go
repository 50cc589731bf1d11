package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/bench"
)

func (a *app) benchSoakCommand() *cobra.Command {
	o := bench.Options{Rate: 1, Databases: 1, Rounds: 1, Messages: 1}
	plan := bench.SoakPlan{For: time.Hour, Load: 0.7, Build: currentBuild().Version}
	var to benchTarget
	var svg string
	var keep bool
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Measure whether anything grows in a long run",
		Long: "Finds the rate that the machine can carry from commit to effect, and then works at a share of it for long: producers, a relay\n" +
			"that is a process of its own, a broker, consumers with an inbox. Takes sixty samples of memory, goroutines, open files, latency, the sizes\n" +
			"of log and inbox and the rows of the ledger, and judges the second half: whether the line through the samples rises by more\n" +
			"than a limit. It fails if one does, or if a message has no effect at the end. A hash and an fsync, ten times a second, show how fast the\n" +
			"machine itself is: where it has become slower, latencies are not judged. The log is laid out with a short ring, so that\n" +
			"retention happens many times. It runs on Linux. What was sent stays at the broker, under a name of its own.",
		Example: "  postrider bench soak --for 1h --load 70% --broker nats --url nats://127.0.0.1:4222 --svg soak.svg\n" +
			"  postrider bench soak --for 1m --broker rabbitmq --json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			driver, settings, err := to.find()
			if err != nil {
				return err
			}
			plan.Broker, plan.Settings = driver, *settings
			plan.Command = fmt.Sprintf("%s --for %s --load %s --broker %s --json", cmd.CommandPath(), (*daysFlag)(&plan.For), (*percentFlag)(&plan.Load), to.name)
			if err := plan.Validate(); err != nil {
				return usageError{err}
			}
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			o.Ring = plan.Ring()
			var result bench.SoakResult
			s := scenario{name: "soak", run: measured(func(ctx context.Context, l *bench.Lab) (_ bench.SoakResult, err error) {
				result, err = bench.Soak(ctx, l, plan)
				return result, err
			})}
			if err := a.measure(cmd.Context(), s, o, keep); err != nil {
				return err
			}
			if svg != "" {
				if err := os.WriteFile(svg, []byte(result.Chart(&plan)), 0o644); err != nil {
					return err
				}
			}
			if !result.Flat {
				return fmt.Errorf("bench: not flat: %s", strings.Join(result.Faults(), "; "))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.Var((*daysFlag)(&plan.For), "for", "how long, without the time to find the full rate")
	flags.Var((*percentFlag)(&plan.Load), "load", "share of the full rate")
	to.flags(flags)
	flags.StringVar(&svg, "svg", "", "file to draw the samples into")
	flags.IntVar(&o.Payload, "payload", 256, "bytes of each message's payload")
	flags.IntVar(&o.Shards, "shards", 8, "shards of the log")
	flags.IntVar(&o.Writers, "writers", 16, "producers at work at the same time")
	flags.BoolVar(&keep, "keep", false, "do not remove the schema at the end")
	return cmd
}
