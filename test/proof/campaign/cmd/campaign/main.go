// Command campaign runs the fault campaign: real servers, real relays, a workload that numbers
// every message, and faults from a seeded schedule. At the end it reports whether any message was
// lost, invented, reordered or processed twice.
//
//	campaign run --minutes 10 --seed 7 --faults 60    a campaign; its files stay in a folder
//	campaign verify DIR                               the verdict on an old run, by the present oracle
//	campaign report DIR... -o FILE.md                 a page about one or several runs
//	campaign faults                                   what can go wrong here
//	campaign skewed FILE                              builds a relay whose clock can be wrong
//
// Data goes to standard output, everything else to standard error. Exit status: 0 all invariants
// hold, 1 an invariant is broken, 2 the campaign itself failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is a subcommand.
type command struct {
	name, usage, doc string
	run              func(ctx context.Context, args []string) error
}

// commands returns the subcommands for users, and those that run processes of the workload.
func commands() (known, hidden []command) {
	known = []command{
		{"run", "run [flags]", "Run a campaign", runCommand},
		{"verify", "verify [--json] DIR", "Check an old run again", verifyCommand},
		{"report", "report DIR... -o FILE.md", "Write a page about runs", reportCommand},
		{"faults", "faults [--json]", "List the kinds of faults, and whether this machine can do each", faultsCommand},
		{"skewed", "skewed FILE", "Build the relay whose clock can be wrong, for run --skewed; takes minutes once", skewedCommand},
	}
	hidden = []command{
		{"produce", "produce --plan FILE", "Write messages", produceCommand},
		{"consume", "consume --plan FILE --number N", "Consume messages", consumeCommand},
		{"receive", "receive --plan FILE", "Receive messages by HTTP", receiveCommand},
		{"call", "call --plan FILE", "Make calls that must take effect once", callCommand},
	}
	return known, hidden
}

// Errors that determine the exit status.
var (
	errBroken = errors.New("an invariant is broken")
	errUsage  = errors.New("wrong usage")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := dispatch(ctx, os.Args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errBroken):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(2)
	}
}

func dispatch(ctx context.Context, args []string) error {
	known, hidden := commands()
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(os.Stdout, known)
		return nil
	}
	for _, c := range append(known, hidden...) {
		if c.name == args[0] {
			return c.run(ctx, args[1:])
		}
	}
	usage(os.Stderr, known)
	return fmt.Errorf("%w: there is no command %q", errUsage, args[0])
}

func usage(to io.Writer, known []command) {
	fmt.Fprintln(to, "Usage:")
	for _, c := range known {
		fmt.Fprintf(to, "  campaign %-26s %s\n", c.usage, c.doc)
	}
	fmt.Fprintln(to, "\nFor the flags of a command: campaign COMMAND --help")
}

// newFlags returns the flags of a command.
func newFlags(usage string) *flag.FlagSet {
	flags := flag.NewFlagSet("campaign "+usage, flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "Usage: campaign %s\n", usage)
		flags.PrintDefaults()
	}
	return flags
}

// parse parses flags before and after the other arguments, which it returns.
func parse(flags *flag.FlagSet, args []string) (others []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return others, nil
		}
		others, args = append(others, flags.Arg(0)), flags.Args()[1:]
	}
}
