package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
)

func (a *app) messagesTailCommand() *cobra.Command {
	var f filterFlags
	var lines int
	var every time.Duration
	var wide bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow the log until interrupted",
		Long: "Prints the last messages, and then each new one that matches when it has been committed, with its status at that\n" +
			"moment. Ends with exit code 130 after an interrupt.\n\n" +
			"--json prints one object a line, with the fields of \"messages ls\".",
		Example: "  postrider messages tail --type order.placed\n" +
			"  postrider messages tail --status dead --json",
		Args: noArguments,
		RunE: a.onAdmin(func(ctx context.Context, d operator, _ []string) error {
			filter, err := f.parse(time.Now(), allStatuses, nil)
			if err != nil {
				return err
			}
			if every <= 0 || lines < 0 {
				return usagef("--every is %s, --lines is %d: want more than 0, and at least 0", every, lines)
			}
			if filter.Feed, err = a.theFeed(ctx, d, filter.Feed); err != nil {
				return err
			}
			return a.tail(ctx, d, filter, lines, every, wide)
		}),
	}
	f.addFlags(cmd)
	f.addStatus(cmd, allStatuses)
	cmd.Flags().IntVarP(&lines, "lines", "n", 10, "begin with this many of the last messages")
	cmd.Flags().DurationVar(&every, "every", time.Second, "how often to query")
	addWide(cmd, &wide)
	return cmd
}

// tail prints new messages. Each time it reads at least one whole page, because a transaction may
// commit after one that began later. It reads more pages if all messages of a page are new. It
// never reads further back than its first query.
func (a *app) tail(ctx context.Context, d operator, filter admin.Filter, lines int, every time.Duration, wide bool) error {
	seen := make(map[int64]bool)
	var floor int64 // older messages are never new
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for first := true; ; first = false {
		var fresh []listed
		var before int64
		page := make(map[int64]bool)
		for {
			found, err := d.Messages(ctx, filter.Feed, filter, before, pageSize)
			if err != nil {
				return err
			}
			known := false
			for i := range found.Items {
				m := &found.Items[i]
				page[m.Seq] = true
				if seen[m.Seq] || m.Seq < floor {
					known = true
				} else {
					fresh = append(fresh, listLogged(m))
				}
			}
			if before = found.Next; before <= floor || known || first {
				break
			}
		}
		if first {
			fresh = fresh[:min(lines, len(fresh))]
		}
		floor = max(floor, before) // do not report older messages as new if a later query finds them again
		seen = page
		slices.Reverse(fresh)
		if err := a.printLines(fresh, wide); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// printLines prints messages one by one. Columns have a minimum width, so that most lines are
// aligned.
func (a *app) printLines(all []listed, wide bool) error {
	if a.asJSON {
		for i := range all {
			if err := a.json(all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	_, rows := a.listedRows(all, wide, time.Now())
	w := tabwriter.NewWriter(a.out, 16, 0, 2, ' ', 0)
	for i, row := range rows {
		row[1] = all[i].Enqueued.Local().Format(time.TimeOnly)
		row[3] = a.paint(statusColour(row[3]), row[3])
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}
