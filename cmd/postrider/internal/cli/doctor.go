package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/doctor"
)

// diagnosis is the JSON output of "postrider doctor".
type diagnosis struct {
	Problems int              `json:"problems"`
	Warnings int              `json:"warnings"`
	Findings []doctor.Finding `json:"findings"`
}

func (a *app) doctorCommand() *cobra.Command {
	var file string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check databases, brokers and configuration for problems",
		Long: "Examines the databases, feeds and brokers of a configuration file or, with --dsn or without a file, one database.\n" +
			"It changes nothing. Every finding says why it matters, and which command fixes it.\n\n" +
			"Exit codes: 0 nothing was found, or only information; 1 warnings; 2 problems: messages are not delivered, or can be lost.\n" +
			"A mistake in the command line or in the file is 2 too.",
		Example: "  postrider doctor --config postrider.yaml\n" +
			"  postrider doctor --dsn postgres://app@localhost/app --verbose\n" +
			"  postrider doctor --json | jq '.findings[] | select(.severity == \"problem\")'",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			path, err := a.doctorFile(cmd, file)
			if err != nil {
				return err
			}
			var findings []doctor.Finding
			if path == "" {
				findings, err = a.examineDatabase(ctx)
			} else {
				findings, err = a.examineFile(ctx, path)
			}
			if err == nil {
				err = ctx.Err() // an interrupted examination is incomplete
			}
			if err != nil {
				return err
			}
			return a.reportFindings(findings, verbose)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "file with databases, destinations and feeds; default: $POSTRIDER_CONFIG, ./"+defaultConfig)
	cmd.Flags().BoolVar(&verbose, "verbose", false, "also list the checks that found nothing")
	return cmd
}

// doctorFile returns the file to examine. Empty means the database that the flags name.
func (a *app) doctorFile(cmd *cobra.Command, given string) (string, error) {
	for _, flag := range []string{"dsn", "schema"} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		if given != "" {
			return "", usagef("--%s and --config contradict each other: the file %s sets it in %s", flag, given, inFile[flag])
		}
		return "", nil
	}
	path, said := configPath(given)
	if _, err := os.Stat(path); !said && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, nil
}

func (a *app) examineDatabase(ctx context.Context) ([]doctor.Finding, error) {
	target, err := a.target(ctx, "", &a.db)
	if err != nil {
		return nil, err
	}
	defer target.Pool.Close()
	return doctor.Run(ctx, []doctor.Database{target}, nil), nil
}

func (a *app) target(ctx context.Context, name string, db *database) (doctor.Database, error) {
	pool, err := db.open(ctx)
	return doctor.Database{Name: name, Pool: pool, Schema: db.schema, Flags: db.commandFlags()}, err
}

// examineFile examines everything that the file configures.
func (a *app) examineFile(ctx context.Context, path string) ([]doctor.Finding, error) {
	f, err := a.useConfig(path, false)
	if err != nil {
		return nil, err
	}
	var all []*config.Plan
	var targets []doctor.Database
	for _, name := range slices.Sorted(maps.Keys(f.Databases)) {
		plans, err := plansOf(f, name)
		if err != nil {
			return nil, err
		}
		all = append(all, plans...)
		db := fileDatabase(name, f.Databases[name])
		if db.isClassic() {
			continue // "postrider adopt" checks tables
		}
		target, err := a.target(ctx, name, db)
		if err != nil {
			return nil, err
		}
		defer target.Pool.Close()
		target.Feeds, target.HasFile, target.Logs = plans, true, logsOf(f)
		targets = append(targets, target)
	}
	findings := doctor.Run(ctx, targets, destinationsOf(f, all))
	for _, w := range f.Warnings() {
		findings = append(findings, doctor.Finding{Check: "file", Severity: doctor.Warning, Subject: path,
			Finding: fmt.Sprintf("line %d: %s: %s", w.Line, w.Path, w.Message), Why: "It is probably not what was meant.",
			Fix: "postrider config validate " + path})
	}
	doctor.Sort(findings)
	return findings, nil
}

// logsOf returns the destinations where each name is a log of its own.
func logsOf(f *config.File) (logs []string) {
	for name, d := range f.Destinations {
		scheme, _, _ := strings.Cut(d.URL, ":")
		switch cmp.Or(d.Broker, scheme) {
		case "kafka", "kafkas", "pubsub", "pulsar", "pulsar+ssl", "redis", "rediss", "sns", "sqs":
			logs = append(logs, name)
		case "rabbitmq", "amqp", "amqps":
			if d.Options["exchange"] == "" {
				logs = append(logs, name)
			}
		}
	}
	return logs
}

// destinationsOf returns the destinations of the feeds, with the names that are used there.
func destinationsOf(f *config.File, plans []*config.Plan) []doctor.Destination {
	names := make(map[string][]string) // by destination
	for _, plan := range plans {
		for _, to := range plan.Table.Destinations() {
			names[to] = append(names[to], plan.Table.Names(to)...)
		}
	}
	var destinations []doctor.Destination
	for _, name := range slices.Sorted(maps.Keys(names)) {
		used := slices.Compact(slices.Sorted(slices.Values(names[name])))
		destinations = append(destinations, doctor.Destination{Name: name, Config: f.Destinations[name], Names: used})
	}
	return destinations
}

// plansOf returns the feeds of one database.
func plansOf(f *config.File, database string) ([]*config.Plan, error) {
	var plans []*config.Plan
	for _, name := range slices.Sorted(maps.Keys(f.Feeds)) {
		plan, err := f.Feed(name)
		if err != nil {
			return nil, err
		}
		if plan.DatabaseName == database {
			plans = append(plans, plan)
		}
	}
	return plans, nil
}

// reportFindings prints the findings and returns the error that determines the exit code.
func (a *app) reportFindings(findings []doctor.Finding, verbose bool) error {
	d := diagnosis{Findings: []doctor.Finding{}}
	for _, f := range findings {
		f.Finding, f.Fix = a.scrub(f.Finding), a.scrub(f.Fix)
		switch f.Severity {
		case doctor.Problem:
			d.Problems++
		case doctor.Warning:
			d.Warnings++
		default:
		}
		if verbose || f.Severity != doctor.OK {
			d.Findings = append(d.Findings, f)
		}
	}
	if err := a.printDiagnosis(d); err != nil {
		return err
	}
	summary := fmt.Sprintf("problems: %d, warnings: %d", d.Problems, d.Warnings)
	switch {
	case d.Problems > 0:
		return hintedError{usageError{errors.New(summary)}, ""} // for its exit code
	case d.Warnings > 0:
		return errors.New(summary)
	}
	return nil
}

func (a *app) printDiagnosis(d diagnosis) error {
	if a.asJSON {
		return a.json(d)
	}
	var b strings.Builder
	for _, f := range d.Findings {
		where := f.Check
		if f.Subject != "" {
			where = f.Subject + ": " + f.Check
		}
		fmt.Fprintf(&b, "%-7s  %s: %s\n", f.Severity, where, f.Finding)
		if f.Why != "" {
			fmt.Fprintf(&b, "         why: %s\n", f.Why)
		}
		if f.Fix != "" {
			fmt.Fprintf(&b, "         fix: %s\n", f.Fix)
		}
	}
	if d.Problems+d.Warnings == 0 {
		b.WriteString("no problems found\n")
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}
