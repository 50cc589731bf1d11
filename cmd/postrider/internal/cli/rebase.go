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

// rebasing is what "rebase" does, or would do.
type rebasing struct {
	Schema  string             `json:"schema"`
	Foreign bool               `json:"foreign"` // the ledger was written in another database
	Done    bool               `json:"done"`
	Feeds   []postgres.Rebased `json:"feeds"` // what each of them still sends
}

func (a *app) rebaseCommand() *cobra.Command {
	var c change
	var force bool
	cmd := &cobra.Command{
		Use:   "rebase",
		Short: "Make a restored or cloned database the home of its messages",
		Long: "After a restore or a clone relays pause, because sending could repeat what the original has sent. Rebase keeps\n" +
			"what the ledger had not settled, forgets all other messages, and lets relays go on from there. It says first how\n" +
			"many messages of each feed will be sent. Producers wait while it runs, and while it counts.\n\n" +
			"A copy of the server's files beside the original is not noticed by itself. Say home in the configuration file, or --home:\n" +
			"the first relay, or a rebase, gives it to the ledger, and relays that have another, or none, pause as in any other copy.\n\n" +
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
	cmd.Flags().BoolVar(&force, "force", false, "also if the ledger was written in this very database")
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
			a.notef("a copy of the server's files is known by its home alone: say home in the configuration, or --home")
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
