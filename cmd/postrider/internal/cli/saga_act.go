package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/saga"
)

// sagaActed is the result of a change to sagas, or of its dry run.
type sagaActed struct {
	Action saga.Act        `json:"action"`
	Done   bool            `json:"done"`
	Count  int             `json:"count"`
	Sample []saga.Instance `json:"sample"` // of the affected sagas, before the change
}

func (a *app) sagaActCommand(act saga.Act, short string) *cobra.Command {
	var f sagaFlags
	var c change
	var all bool
	var step string
	name := string(act)
	cmd := &cobra.Command{
		Use:   name + " {ID... | --all}",
		Short: short,
		Long: short + ".\nSteps that are running at that moment are not changed.\n\n" +
			"--json prints an object with: action, done, count, sample; sample has the fields of \"saga ls\".",
		Example: "  postrider saga " + name + " trip-7 --dry-run\n" +
			"  postrider saga " + name + " --all --name book-trip --older-than 1d --reason 'bank was down' --yes",
		RunE: a.onSagas(func(ctx context.Context, s saga.Admin, args []string) error {
			filter, err := f.parse(time.Now(), act.From())
			if err != nil {
				return err
			}
			for _, status := range filter.Statuses {
				if !slices.Contains(act.From(), status) {
					return usagef("--status: %s does nothing to sagas that are %s", name, status)
				}
			}
			switch {
			case len(args) > 0 && (all || f.narrows()):
				return usagef("IDs and --all or filters contradict each other")
			case len(args) == 0 && !all:
				return usagef("no sagas selected: add their IDs, or --all for all that match the filters")
			}
			found, err := a.chooseSagas(ctx, s, filter, args)
			if err != nil {
				return err
			}
			return a.actOnSagas(ctx, s, c, act, step, found)
		}),
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all that match the filters")
	if act != saga.ActCompensate {
		cmd.Flags().StringVar(&step, "step", "", "only this step")
	}
	c.addFlags(cmd)
	return cmd
}

// chooseSagas returns the sagas with the IDs, each of which must exist, or all that match if there
// are no IDs.
func (a *app) chooseSagas(ctx context.Context, s saga.Admin, filter saga.Filter, ids []string) ([]saga.Instance, error) {
	if len(ids) == 0 {
		found, _, err := readSagas(ctx, s, filter, 0)
		return found, err
	}
	var all []saga.Instance
	for _, id := range ids {
		found, err := s.List(ctx, saga.Filter{Name: filter.Name, ID: id}, nil, pageSize)
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, a.noSaga(id)
		case len(found) > 1:
			return nil, hintedError{usagef("%d sagas have the ID %s", len(found), phrase.ShellWord(id)), "add --name with one of those in: " + a.next("saga show", id)}
		case !slices.Contains(filter.Statuses, found[0].Status):
			return nil, hintedError{fmt.Errorf("saga %s is %s: there is nothing to do", phrase.ShellWord(id), found[0].Status), "to see it: " + a.next("saga show", id)}
		}
		all = append(all, found[0])
	}
	return all, nil
}

var sagaQuestions = map[saga.Act]func(sagas string) string{
	saga.ActRetry:      func(s string) string { return "Retry the failed steps of " + s + " now?" },
	saga.ActCompensate: func(s string) string { return "Give up " + s + ", and undo what was done?" },
	saga.ActSkip:       func(s string) string { return "Skip the current steps of " + s + ", and continue without them?" },
}

func (a *app) actOnSagas(ctx context.Context, s saga.Admin, c change, act saga.Act, step string, found []saga.Instance) error {
	plan := sagaActed{Action: act, Count: len(found), Sample: append([]saga.Instance{}, found[:min(len(found), sampleSize)]...)}
	if plan.Count == 0 {
		a.notef("no sagas match")
	}
	if plan.Count == 0 || c.dryRun {
		return a.reportSagas(plan)
	}
	if a.asks && !c.yes {
		for _, i := range plan.Sample {
			a.say(fmt.Sprintf("  %s  %s  %s  %s\n", cell(i.Name, false), cell(i.ID, false), i.Status, cell(i.Cause, false)))
		}
	}
	if err := a.confirm(c.danger, sagaQuestions[act](phrase.Quantity(plan.Count, "saga", "sagas"))); err != nil {
		return err
	}
	plan.Count = 0
	for _, i := range found {
		done, err := s.Act(ctx, c.by(), act, i.Name, i.ID, step)
		if err != nil {
			a.notef("done to %s before this:", phrase.Quantity(plan.Count, "saga", "sagas"))
			return err
		}
		if done {
			plan.Count++
		}
	}
	plan.Done = true
	if left := len(found) - plan.Count; left > 0 {
		a.notef("%s not changed: nothing has failed there, or a step is running at this moment", phrase.Quantity(left, "saga was", "sagas were"))
	}
	return a.reportSagas(plan)
}

func (a *app) reportSagas(r sagaActed) error {
	if a.asJSON {
		return a.json(r)
	}
	if r.Done {
		_, err := fmt.Fprintf(a.out, "%s: %s\n", r.Action, phrase.Quantity(r.Count, "saga", "sagas"))
		return err
	}
	if r.Count == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(a.out, "would %s %s\n", r.Action, phrase.Quantity(r.Count, "saga", "sagas")); err != nil {
		return err
	}
	return a.listSagas(r.Sample, false)
}
