package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "audit",
		Short:   "Show what operators did, who and why",
		Long:    "Everything that an operator changes is recorded. Nothing can change or remove a record.",
		Example: "  postrider audit ls --feed orders",
	})
	cmd.AddCommand(a.auditListCommand())
	return cmd
}

func (a *app) auditListCommand() *cobra.Command {
	var feed string
	var limit int
	var before int64
	var wide bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List records, newest first",
		Long: "Lists records, newest first.\n\n" +
			"--json prints an array of objects with: n, at, who, login, action, why, feed, count, target, before, after.",
		Example: "  postrider audit ls --limit 20\n" +
			"  postrider audit ls --consumer billing\n" +
			"  postrider audit ls --json | jq '.[] | select(.action == \"discard\")'",
		Args: noArguments,
		RunE: a.onAdmin(func(ctx context.Context, d operator, _ []string) error {
			if limit <= 0 {
				return usagef("--limit is %d: want at least 1", limit)
			}
			all, err := d.Audit(ctx, feed, before, limit)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				if err := a.checkWhose(ctx, d, feed); err != nil {
					return err
				}
				a.notef("there are no records")
			}
			if a.asJSON {
				rules, err := a.redaction()
				if err != nil {
					return err
				}
				redactRecords(all, rules)
				return a.json(append([]admin.Entry{}, all...))
			}
			return a.listRecords(all, wide)
		}),
	}
	addWhose(cmd, &feed, "only ")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	cmd.Flags().Int64Var(&before, "before", 0, "only those before the record with this number")
	addWide(cmd, &wide)
	return cmd
}

func (a *app) listRecords(all []admin.Entry, wide bool) error {
	rows := make([][]string, len(all))
	for i := range all {
		e := &all[i]
		target := ""
		if len(e.Target) > 0 {
			text, err := json.Marshal(e.Target)
			if err != nil {
				return err
			}
			target = string(text)
		}
		rows[i] = []string{
			strconv.FormatInt(e.N, 10), e.At.Format(time.RFC3339), a.cell(e.Who, wide), a.cell(e.Action, wide), a.cell(e.Feed, wide),
			strconv.Itoa(e.Count), a.cell(e.Why, wide), a.cell(target, wide),
		}
	}
	return a.listing([]string{"N", "AT", "WHO", "ACTION", "FEED", "COUNT", "REASON", "TARGET"}, rows, "", nil)
}
