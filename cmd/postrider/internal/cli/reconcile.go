package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/reconcile"
)

func (a *app) reconcileCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "reconcile",
		Short: "Find missing effects and send their messages again",
		Long: "Reconcilers are jobs that find business rows without their effect, messages that a consumer has not recorded, or\n" +
			"messages that a broker does not hold, and send them again. \"postrider relay --config\" runs the jobs of its file\n" +
			"on schedule; only one process runs a job at a time.",
		Example: "  postrider reconcile ls\n" +
			"  postrider reconcile run enrollments --dry-run",
	})
	cmd.AddCommand(a.reconcileListCommand(), a.reconcileRunCommand())
	return cmd
}

// reconcilerState is the state of a job in the list.
type reconcilerState struct {
	Database string `json:"database,omitempty"` // the name in the file
	reconcile.State
	Configured bool `json:"configured"` // it is in the file
}

func (a *app) reconcileListCommand() *cobra.Command {
	var file string
	var wide bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List reconcilers, and what they have found and fixed",
		Long: "Lists the reconcilers of all databases in the configuration file or, without a file, those that the database knows.\n\n" +
			"--json prints an array of objects with: database, job, schedule, next, holder, until, runs, failed, total (found,\n" +
			"fixed), last (started, finished, holder, found, fixed, error), configured.",
		Example: "  postrider reconcile ls --json | jq '.[] | {job, fixed: .total.fixed}'",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			states, err := a.reconcilerStates(cmd.Context(), file)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.json(states)
			}
			if len(states) == 0 {
				a.notef("there are no reconcilers; to have some, see docs/reconcile.md")
			}
			return a.listReconcilers(states, wide)
		},
	}
	addConfig(cmd, &file)
	addWide(cmd, &wide)
	return cmd
}

func addConfig(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "", "configuration file, which names the databases; default: $POSTRIDER_CONFIG, then ./"+defaultConfig)
}

// reconcilerStates reads the states from the databases of the file or, without a file, from the
// database of the flags.
func (a *app) reconcilerStates(ctx context.Context, file string) ([]reconcilerState, error) {
	states := []reconcilerState{}
	path, said := configPath(file)
	if _, err := os.Stat(path); !said && errors.Is(err, os.ErrNotExist) {
		pool, err := a.db.open(ctx)
		if err != nil {
			return nil, err
		}
		defer pool.Close()
		db, err := a.db.log(pool)
		if err != nil {
			return nil, err
		}
		known, err := db.Reconciliations().Jobs(ctx)
		for _, s := range known {
			states = append(states, reconcilerState{State: s})
		}
		return states, a.db.explain(err)
	}
	f, err := a.useConfig(path, false)
	if err != nil {
		return nil, err
	}
	p, err := a.openReconcilers(ctx, f, slices.Sorted(maps.Keys(f.Reconcilers)), actor(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer p.close() //nolint:errcheck // nothing was sent
	for _, database := range slices.Sorted(maps.Keys(p.byName)) {
		known, err := p.byName[database].Jobs(ctx)
		if err != nil {
			return nil, (&filedDatabase{f, database}).explain(err)
		}
		for _, s := range known {
			states = append(states, reconcilerState{database, s, p.where[s.Job] == database})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Reconcilers)) {
		if !slices.ContainsFunc(states, func(s reconcilerState) bool { return s.Job == name && s.Configured }) {
			schedule, _ := f.Reconcilers[name].Schedule() // was validated with the file
			states = append(states, reconcilerState{p.where[name], reconcile.State{Job: name, Schedule: schedule.String()}, true})
		}
	}
	return states, nil
}

// filedDatabase is a database of a file, for hints in errors.
type filedDatabase struct {
	file *config.File
	name string
}

func (d *filedDatabase) explain(err error) error {
	return fileDatabase(d.name, d.file.Databases[d.name]).explain(err)
}

func (a *app) listReconcilers(states []reconcilerState, wide bool) error {
	now := time.Now()
	rows := make([][]string, len(states))
	for i, s := range states {
		state := "idle"
		switch {
		case s.Holder != "":
			state = "running"
		case s.Last.Error != "":
			state = "failed"
		case s.Runs == 0:
			state = "new"
		}
		next := "-"
		if !s.Next.IsZero() {
			next = phrase.Age(max(0, s.Next.Sub(now)))
		}
		rows[i] = []string{
			a.cell(s.Job, wide), state, a.cell(s.Schedule, wide), ago(s.Last.Started, now), a.cell(cmp.Or(s.Last.Holder, "-"), wide),
			number(s.Last.Found), number(s.Last.Fixed), number(s.Total.Found), number(s.Total.Fixed), next, a.cell(s.Last.Error, wide),
		}
	}
	titles := []string{"JOB", "STATE", "SCHEDULE", "LAST RUN", "BY", "FOUND", "FIXED", "ALL FOUND", "ALL FIXED", "NEXT IN", "ERROR"}
	return a.listing(titles, rows, "STATE", func(state string) int {
		if state == "failed" {
			return yellow
		}
		return green
	})
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// reconciled is the result of a run, or of its dry run.
type reconciled struct {
	Job  string `json:"job"`
	Done bool   `json:"done"`
	reconcile.Run
	Messages []reconcilerMessage `json:"messages"` // the first ones
}

type reconcilerMessage struct {
	ID       postrider.ID `json:"id,omitzero"`
	Type     string       `json:"type"`
	Key      string       `json:"key,omitempty"`
	DedupKey string       `json:"dedup_key,omitempty"`
	Payload  string       `json:"payload,omitempty"`
}

// shownMessages is the maximum number of messages of a run that are printed.
const shownMessages = 100

func (a *app) reconcileRunCommand() *cobra.Command {
	var file string
	var o reconcile.Options
	var why change
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Run a reconciler now",
		Long: "Runs a reconciler of the configuration file now, unless another process is running it. This does not change its schedule,\n" +
			"and is recorded in the audit log. With --dry-run it only prints what it would send, which may include messages sent before.\n\n" +
			"--json prints an object with: job, done, started, finished, holder, found, fixed, messages (id, type, key, dedup_key, payload).",
		Example: "  postrider reconcile run enrollments --dry-run\n" +
			"  postrider reconcile run enrollments --since 72h --limit 1000 --reason 'import of Tuesday'",
		Args: named("reconciler"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Limit < 0 || o.Since < 0 {
				return usagef("--limit and --since: want more than 0")
			}
			return a.runReconciler(cmd.Context(), file, args[0], o, why)
		},
	}
	addConfig(cmd, &file)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be sent")
	cmd.Flags().DurationVar(&o.Since, "since", 0, "how far back to look, such as 72h; default: the window of the reconciler")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "most messages to send; default: that of the reconciler")
	why.addReason(cmd)
	return cmd
}

func (a *app) runReconciler(ctx context.Context, file, name string, o reconcile.Options, why change) error {
	path, _ := configPath(file)
	f, err := a.useConfig(path, false)
	if err != nil {
		return err
	}
	if _, ok := f.Reconcilers[name]; !ok {
		names := slices.Sorted(maps.Keys(f.Reconcilers))
		return hintedError{usagef("%s has no reconciler %s", path, phrase.ShellWord(name)), "it has: " + cmp.Or(strings.Join(names, ", "), "none")}
	}
	p, err := a.openReconcilers(ctx, f, []string{name}, actor(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer p.close() //nolint:errcheck // what was sent is in the database
	result := reconciled{Job: name, Done: !o.DryRun, Messages: []reconcilerMessage{}}
	o.Show = func(m postrider.Message) {
		if len(result.Messages) < shownMessages {
			result.Messages = append(result.Messages, reconcilerMessage{m.ID, m.Type, m.OrderKey(), m.DedupKey, string(m.Payload)})
		}
	}
	database := p.where[name]
	result.Run, err = p.byName[database].RunNow(ctx, name, o)
	if result.Fixed > 0 {
		db, _ := p.database(ctx, database) // is open
		err = errors.Join(err, db.Admin().RecordReconciler(context.WithoutCancel(ctx), why.by(), name, result.Counts))
	}
	var notYet *reconcile.NotYetError
	if errors.As(err, &notYet) {
		return hintedError{err, fmt.Sprintf("wait for it to finish, or %s if that process has died; to see it: %s", phrase.Age(notYet.Wait), a.next("reconcile ls"))}
	}
	if err != nil {
		return (&filedDatabase{f, database}).explain(err)
	}
	return a.reportReconciler(result)
}

func (a *app) reportReconciler(r reconciled) error {
	if a.asJSON {
		return a.json(r)
	}
	words := fmt.Sprintf("found %d, sent %s", r.Found, phrase.Quantity(int(r.Fixed), "message", "messages"))
	if !r.Done {
		words = fmt.Sprintf("found %s; nothing was sent", phrase.Quantity(int(r.Found), "message", "messages"))
	}
	if _, err := fmt.Fprintf(a.out, "%s: %s\n", r.Job, words); err != nil {
		return err
	}
	rows := make([][]string, len(r.Messages))
	for i, m := range r.Messages {
		rows[i] = []string{cell(m.Type, false), cell(cmp.Or(m.Key, "-"), false), cell(cmp.Or(m.DedupKey, "-"), false), cell(m.Payload, false)}
	}
	return a.listing([]string{"TYPE", "KEY", "DEDUP KEY", "PAYLOAD"}, rows, "", nil)
}
