package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/broker/stdout"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// app is the state that all commands share.
type app struct {
	streams
	db      database
	others  []*database       // databases of a configuration file
	lines   *stdout.Publisher // shared by stdout destinations; nil until one is open
	asJSON  bool
	colours bool // out is a terminal with colours
}

// scrub removes the passwords of all known databases from a text.
func (a *app) scrub(text string) string {
	text = a.db.scrub(text)
	for _, d := range a.others {
		text = d.scrub(text)
	}
	return text
}

// newRoot builds the command tree and its shared state.
func newRoot(s streams) (*cobra.Command, *app) {
	a := &app{streams: s, colours: wantsColour(s)}
	root := group(&cobra.Command{
		Use:   "postrider",
		Short: "Publish messages that are written in database transactions: outbox, inbox and sagas",
		Long: "Postrider publishes messages that were written in a business transaction, in order per key, once that has\n" +
			"committed.\n\n" +
			"Data goes to the standard output, everything else to the standard error. Exit codes: 0 done, 1 failure or something\n" +
			"needs attention, 2 wrong usage, 5 the schema is missing or has another version, 6 the database cannot be reached,\n" +
			"130 interrupted. NO_COLOR turns colours off. $POSTRIDER_ACTOR is the operator's name in the audit log; default:\n" +
			"user@host.",
		Example: "  export DATABASE_URL=postgres://app@localhost/app\n" +
			"  postrider migrate up\n" +
			"  postrider relay --to stdout:",
		Version:       currentBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().BoolVar(&a.asJSON, "json", false, "print JSON for programs instead of text for people")
	a.db.addFlags(root)
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		return a.db.choose(func(path string) (*config.File, error) { return a.useConfig(path, false) })
	}
	root.SetUsageTemplate(usageTemplate)
	addGroup(root, "carry", "Set up and run:", a.devCommand(), a.migrateCommand(), a.adoptCommand(), a.relayCommand(), a.enqueueCommand(), a.configCommand(),
		a.brokersCommand())
	addGroup(root, "operate", "Operations:", a.statusCommand(), a.messagesCommand(), a.deadCommand(), a.keysCommand(), a.feedsCommand(),
		a.replayCommand(), a.sagaCommand(), a.reconcileCommand(), a.auditCommand(), a.topCommand(), a.consoleCommand(), a.doctorCommand(), a.healthcheckCommand(),
		a.rebaseCommand())
	addGroup(root, "other", "Other:", a.benchCommand(), a.planCommand(), a.versionCommand(), a.manCommand())
	a.addCompletions(root)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	return root, a
}

// group makes cmd a command that only has subcommands, and suggests similar names for unknown ones.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			cmd.PrintErrln(cmd.UsageString())
			return usagef("%s: which command?", cmd.CommandPath())
		}
		err := usagef("%s has no command %q", cmd.CommandPath(), args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return hintedError{err, "did you mean: " + cmd.CommandPath() + " " + strings.Join(near, ", ")}
		}
		return hintedError{err, "for the list: " + cmd.CommandPath() + " --help"}
	}
	cmd.SuggestionsMinimumDistance = 2
	return cmd
}

// noArguments refuses arguments instead of ignoring them.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
	}
	return nil
}
