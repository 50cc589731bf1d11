package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/saga"
)

func (a *app) sagaShowCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show all details of a saga: steps, signals and data",
		Long: "Shows a saga with its steps, their results and times, the signals that it has received, and its data. If several sagas\n" +
			"have the ID, under different names, it shows all. Values that console.redact of the configuration file lists are hidden.\n\n" +
			"Marks: ✓ done, ↺ undone, ✗ failed, ! stuck, ▸ to be run, ◂ to be undone, … waiting, » skipped, - cancelled, · not reached.\n\n" +
			"--json prints an array of objects: the fields of \"saga ls\", and data, steps, signals, now.",
		Example: "  postrider saga show trip-7\n" +
			"  postrider saga show trip-7 --name book-trip --json | jq '.[0].steps[] | select(.state == \"stuck\")'",
		Args: named("ID"),
		RunE: a.onSagas(func(ctx context.Context, s saga.Admin, args []string) error {
			found, err := s.List(ctx, saga.Filter{Name: name, ID: args[0]}, nil, pageSize)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return a.noSaga(args[0])
			}
			rules, err := a.redaction()
			if err != nil {
				return err
			}
			all := make([]*saga.Instance, len(found))
			for n := range found {
				if all[n], err = s.Show(ctx, found[n].Name, found[n].ID); err != nil {
					return err
				}
				all[n].Data = redactedJSON(all[n].Data, rules)
			}
			if a.asJSON {
				return a.json(all)
			}
			return a.showSagas(all)
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "only of this name")
	return cmd
}

var sagaMarks = map[saga.State]string{
	saga.StepPending: "·", saga.StepReady: "▸", saga.StepWaiting: "…", saga.StepDone: "✓", saga.StepFailed: "✗",
	saga.StepCancelled: "-", saga.StepSkipped: "»", saga.StepUndoing: "◂", saga.StepStuck: "!", saga.StepUndone: "↺",
}

func (a *app) showSagas(all []*saga.Instance) error {
	for n, i := range all {
		if n > 0 {
			if _, err := fmt.Fprintln(a.out); err != nil {
				return err
			}
		}
		if err := a.table(sagaHead(i)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
		if err := a.table(sagaPicture(i)); err != nil {
			return err
		}
		var data bytes.Buffer
		if json.Indent(&data, i.Data, "", "  ") != nil {
			data.Write(i.Data)
		}
		text := strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return visible(r)
		}, data.String())
		if _, err := fmt.Fprintf(a.out, "\n%s\n", text); err != nil {
			return err
		}
		if hint := a.sagaHint(i); hint != "" {
			a.notef("%s", hint)
		}
	}
	return nil
}

// sagaHint returns what to type next.
func (a *app) sagaHint(i *saga.Instance) string {
	switch i.Status {
	case saga.Stuck:
		return "when the cause is fixed: " + a.next("saga retry", i.ID, "--name", i.Name)
	case saga.Waiting:
		return "to give it up: " + a.next("saga compensate", i.ID, "--name", i.Name)
	default:
		return ""
	}
}

func sagaHead(i *saga.Instance) [][]string {
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, cell(value, true)})
		}
	}
	add("saga", i.Name)
	add("id", i.ID)
	add("status", string(i.Status))
	add("given up because", i.Cause)
	add("started", moment(i.Started))
	if i.Finished.IsZero() {
		add("deadline", moment(i.Deadline))
		add("changed", phrase.Age(i.Now.Sub(i.Updated))+" ago")
	} else {
		add("finished", moment(i.Finished)+" after "+brief(i.Finished.Sub(i.Started)))
	}
	for _, g := range i.Signals {
		text := moment(g.At)
		if g.Late {
			text += ", late"
		}
		if g.Repeats > 0 {
			text += fmt.Sprintf(", repeated %d times", g.Repeats)
		}
		add("signal "+g.Name, text)
	}
	return rows
}

// sagaPicture draws the steps, and connects those that run in parallel.
func sagaPicture(i *saga.Instance) [][]string {
	rows := [][]string{{"", "STEP", "STATE", "AFTER", "TOOK", "FAILED", "NEXT", "LAST ERROR"}}
	for n, s := range i.Steps {
		tie := ""
		before, after := n > 0 && i.Steps[n-1].Stage == s.Stage, n+1 < len(i.Steps) && i.Steps[n+1].Stage == s.Stage
		switch {
		case before && after:
			tie = "├ "
		case after:
			tie = "┌ "
		case before:
			tie = "└ "
		}
		row := []string{sagaMarks[s.State], tie + cell(s.Name, false), string(s.State), "-", "-", strconv.Itoa(s.Attempts), "-", cell(s.Error, false)}
		if !s.Reached.IsZero() {
			row[3] = brief(s.Reached.Sub(i.Started))
		}
		if !s.Ended.IsZero() {
			row[4] = brief(s.Ended.Sub(s.Reached))
		}
		switch {
		case s.Skip:
			row[6] = "skipped"
		case s.State == saga.StepWaiting && s.Due.IsZero():
			row[6] = "waits without limit"
		case !s.Due.IsZero() && !s.Due.After(i.Now):
			row[6] = "now"
		case !s.Due.IsZero() && s.State == saga.StepWaiting:
			row[6] = "waits for " + brief(s.Due.Sub(i.Now))
		case !s.Due.IsZero():
			row[6] = "in " + brief(s.Due.Sub(i.Now))
		}
		rows = append(rows, row)
	}
	return rows
}

// brief formats a duration, to the millisecond if it is short.
func brief(d time.Duration) string {
	if d < time.Minute && d > -time.Minute {
		return d.Round(time.Millisecond).String()
	}
	return phrase.Age(d)
}
