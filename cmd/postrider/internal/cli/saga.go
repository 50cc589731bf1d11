package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/feeds"
)

func (a *app) sagaCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "saga",
		Short: "List sagas, and retry, compensate or skip stuck ones",
		Long: "A saga is work of several steps, each with a compensation that undoes it. A saga whose compensation fails too often is\n" +
			"stuck: it is retried slowly, and needs an operator.",
		Example: "  postrider saga ls --status stuck\n" +
			"  postrider saga show trip-7\n" +
			"  postrider saga retry --all --name book-trip --status stuck --reason 'bank is back'",
	})
	cmd.AddCommand(a.sagaListCommand(), a.sagaShowCommand(),
		a.sagaActCommand(saga.ActRetry, "Retry failed or stuck steps now, with a full set of attempts"),
		a.sagaActCommand(saga.ActCompensate, "Give up running sagas, and undo what they have done"),
		a.sagaActCommand(saga.ActSkip, "Skip steps that fail, wait or are stuck; do their work by hand"))
	return cmd
}

// onSagas returns the RunE of a command that needs only the sagas and its arguments.
func (a *app) onSagas(f func(ctx context.Context, s saga.Admin, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		pool, err := a.db.open(cmd.Context())
		if err != nil {
			return err
		}
		defer pool.Close()
		db, err := a.db.log(pool)
		if err != nil {
			return err
		}
		err = f(cmd.Context(), db.SagaAdmin(), args)
		switch {
		case err == nil || errors.As(err, new(hintedError)):
			return err
		case errors.Is(err, feeds.ErrSchema):
			return a.db.hintMigrate(err)
		}
		return a.db.explain(err)
	}
}

// sagaFlags are the flags that select sagas.
type sagaFlags struct {
	name      string
	statuses  []string
	olderThan string
}

func (f *sagaFlags) addFlags(cmd *cobra.Command) {
	words := sagaWords(saga.Statuses())
	cmd.Flags().StringVar(&f.name, "name", "", "of this name")
	cmd.Flags().StringSliceVar(&f.statuses, "status", nil, "with one of these, separated by commas: "+strings.Join(words, ", "))
	cmd.Flags().StringVar(&f.olderThan, "older-than", "", "started before then: a duration such as 2h or 3d, or an RFC 3339 time")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // it was defined above
}

func (f *sagaFlags) narrows() bool { return f.olderThan != "" || len(f.statuses) > 0 }

// parse returns the filter. Without --status it has the statuses of otherwise. It reports all
// mistakes at once.
func (f *sagaFlags) parse(now time.Time, otherwise []saga.Status) (saga.Filter, error) {
	filter := saga.Filter{Name: f.name, Statuses: otherwise}
	var errs []error
	var err error
	if filter.Before, err = parseTime(f.olderThan, now); err != nil {
		errs = append(errs, fmt.Errorf("--older-than: %w", err))
	}
	if len(f.statuses) > 0 {
		filter.Statuses = nil
	}
	for _, s := range f.statuses {
		if !slices.Contains(saga.Statuses(), saga.Status(s)) {
			errs = append(errs, fmt.Errorf("--status: %q is none of %s", s, strings.Join(sagaWords(saga.Statuses()), ", ")))
		}
		filter.Statuses = append(filter.Statuses, saga.Status(s))
	}
	if len(errs) > 0 {
		return filter, usageError{errors.Join(errs...)}
	}
	return filter, nil
}

func sagaWords(statuses []saga.Status) []string {
	words := make([]string, len(statuses))
	for n, s := range statuses {
		words[n] = string(s)
	}
	return words
}

func (a *app) sagaListCommand() *cobra.Command {
	var f sagaFlags
	var limit int
	var wide bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List sagas, newest first",
		Long: "Lists sagas, newest first.\n\n" +
			"--json prints an array of objects with: name, id, status, version, cause, started, updated, deadline, finished.",
		Example: "  postrider saga ls --status running,waiting --older-than 1h\n" +
			"  postrider saga ls --name book-trip --status stuck --json",
		Args: noArguments,
		RunE: a.onSagas(func(ctx context.Context, s saga.Admin, _ []string) error {
			filter, err := f.parse(time.Now(), nil)
			if err != nil {
				return err
			}
			all, more, err := readSagas(ctx, s, filter, limit)
			if err != nil {
				return err
			}
			a.noteEnd(len(all), more, "sagas")
			return a.listSagas(all, wide)
		}),
	}
	f.addFlags(cmd)
	addListFlags(cmd, &limit, &wide)
	return cmd
}

// readSagas returns up to limit matching sagas, and reports whether there are more.
func readSagas(ctx context.Context, s saga.Admin, filter saga.Filter, limit int) (all []saga.Instance, more bool, err error) {
	var after *saga.Instance
	for {
		page := pageSize
		if limit > 0 {
			page = min(page, limit-len(all)+1) // one more than needed, to see if there are more
		}
		found, err := s.List(ctx, filter, after, page)
		if err != nil {
			return nil, false, err
		}
		all = append(all, found...)
		if limit > 0 && len(all) > limit {
			return all[:limit], true, nil
		}
		if len(found) < page {
			return all, false, nil
		}
		after = &found[len(found)-1]
	}
}

func (a *app) listSagas(all []saga.Instance, wide bool) error {
	if a.asJSON {
		return a.json(append([]saga.Instance{}, all...))
	}
	rows := make([][]string, len(all))
	now := time.Now()
	for n := range all {
		i := &all[n]
		rows[n] = []string{a.cell(i.Name, wide), a.cell(i.ID, wide), string(i.Status), ago(i.Started, now), ago(i.Updated, now), a.cell(i.Cause, wide)}
	}
	return a.listing([]string{"NAME", "ID", "STATUS", "STARTED", "CHANGED", "GIVEN UP BECAUSE"}, rows, "STATUS", sagaColour)
}

// sagaColour returns the colour of a status, by urgency.
func sagaColour(status string) int {
	switch saga.Status(status) {
	case saga.Stuck:
		return red
	case saga.Compensating, saga.Compensated:
		return yellow
	case saga.Completed:
		return green
	default:
		return plain
	}
}

// noSaga returns the error for an unknown ID.
func (a *app) noSaga(id string) error {
	return hintedError{wordedError{saga.ErrNotFound, "there is no saga " + phrase.ShellWord(id)}, "for the list: " + a.next("saga ls")}
}
