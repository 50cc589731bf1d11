package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/postgres"
)

// rebasing is the result of "rebase", or of its dry run.
type rebasing struct {
	Schema  string             `json:"schema"`
	Foreign bool               `json:"foreign"` // the ledger was written in another database
	Done    bool               `json:"done"`
	Feeds   []postgres.Rebased `json:"feeds"` // what each feed still sends
}

func (a *app) rebaseCommand() *cobra.Command {
	var c change
	var force bool
	cmd := &cobra.Command{
		Use:   "rebase",
		Short: "Make a restored or cloned database the home of its messages",
		Long: "After a restore or a clone relays pause, because sending could repeat what the original has sent. Rebase keeps the\n" +
			"messages that were not settled in the copied ledger, drops all others, and lets relays continue from there. It first\n" +
			"prints how many messages each feed will send. Producers wait while it counts and while it runs.\n\n" +
			"A copy of the server's files cannot be detected next to the original by itself. For that, set home in the configuration\n" +
			"file, or --home: the first relay, or a rebase, records it in the ledger, and relays with another home, or none, pause.\n\n" +
			"--json prints an object with: schema, foreign, done, feeds; feeds have feed and unsettled.",
		Example: "  postrider rebase --dry-run\n" +
			"  postrider rebase --reason 'restored after the fire'",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pool, err := a.db.open(cmd.Context())
			if err != nil {
				return err
			}
			defer pool.Close()
			return a.rebase(cmd.Context(), pool, c, force)
		},
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also if the ledger was written in this database")
	return cmd
}

func (a *app) rebase(ctx context.Context, pool *pgxpool.Pool, c change, force bool) error {
	db, err := a.db.log(pool)
	if err != nil {
		return err
	}
	r := rebasing{Schema: a.db.schema, Feeds: []postgres.Rebased{}}
	if r.Foreign, err = db.Foreign(ctx); err != nil {
		return a.db.explain(err)
	}
	if !r.Foreign {
		a.notef("the ledger was written in this database: there is no need to rebase it")
		if a.db.home == "" {
			a.notef("a copy of the server's files can only be detected by its home: set home in the configuration, or --home")
		}
	}
	if !r.Foreign && !force {
		return a.reportRebasing(r)
	}
	if r.Feeds, err = db.PlanRebase(ctx); err != nil || c.dryRun {
		return errors.Join(err, a.reportRebasing(r))
	}
	total, feeds := int64(0), make([]string, len(r.Feeds))
	for i, f := range r.Feeds {
		total += f.Unsettled
		feeds[i] = fmt.Sprintf("%s %d", f.Feed, f.Unsettled)
	}
	question := fmt.Sprintf("Make this database the home of the messages in schema %q, and send %s (%s)?",
		a.db.schema, phrase.Quantity(int(total), "message", "messages"), strings.Join(feeds, ", "))
	if err := a.confirm(c.danger, question); err != nil {
		return err
	}
	if r.Feeds, err = db.Rebase(ctx, c.by()); err != nil {
		return err
	}
	r.Done = true
	return a.reportRebasing(r)
}

func (a *app) reportRebasing(r rebasing) error {
	if a.asJSON {
		return a.json(r)
	}
	if !r.Done {
		a.notef("ledger from another database: %s", map[bool]string{true: "yes", false: "no"}[r.Foreign])
	}
	rows := [][]string{{"FEED", "SENDS"}}
	for _, f := range r.Feeds {
		rows = append(rows, []string{f.Feed, strconv.FormatInt(f.Unsettled, 10)})
	}
	return a.table(rows)
}
