package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/store/postgres"
)

// rebasing is what "rebase" does, or would do.
type rebasing struct {
	Schema  string             `json:"schema"`
	Foreign bool               `json:"foreign"` // the ledger was written in another database
	Done    bool               `json:"done"`
	Feeds   []postgres.Rebased `json:"feeds"` // what was kept for each
}

func (a *app) rebaseCommand() *cobra.Command {
	var d danger
	var force bool
	cmd := &cobra.Command{
		Use:   "rebase",
		Short: "Make a restored or cloned database the home of its messages",
		Long: "After a restore or a clone relays pause, because sending could repeat what the original has sent. Rebase keeps\n" +
			"what the ledger had not settled, forgets all other messages, and lets relays go on from there. Producers wait\n" +
			"while it runs.",
		Example: "  postrider rebase --dry-run",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pool, err := a.db.open(cmd.Context())
			if err != nil {
				return err
			}
			defer pool.Close()
			return a.rebase(cmd.Context(), pool, d, force)
		},
	}
	d.addFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also if the ledger was written in this very database")
	return cmd
}

func (a *app) rebase(ctx context.Context, pool *pgxpool.Pool, d danger, force bool) error {
	store, err := postgres.New(pool, a.db.store())
	if err != nil {
		return usageError{err}
	}
	r := rebasing{Schema: a.db.schema, Feeds: []postgres.Rebased{}}
	if r.Foreign, err = a.isForeign(ctx, pool); err != nil {
		return err
	}
	if !r.Foreign {
		a.notef("the ledger was written in this database: there is no need to rebase it")
	}
	if d.dryRun || !r.Foreign && !force {
		return a.reportRebasing(r)
	}
	question := fmt.Sprintf("Make this database the home of the messages in schema %q, and send what they still owe?", a.db.schema)
	if err := a.confirm(d, question); err != nil {
		return err
	}
	kept, err := store.Rebase(ctx)
	if err != nil {
		return err
	}
	r.Done = true
	r.Feeds = append(r.Feeds, kept...)
	return a.reportRebasing(r)
}

// isForeign reports whether the ledger was written in another database.
func (a *app) isForeign(ctx context.Context, pool *pgxpool.Pool) (foreign bool, err error) {
	err = pool.QueryRow(ctx, a.db.in("SELECT NOT @schema@.at_home()")).Scan(&foreign)
	return foreign, a.db.explain(err)
}

func (a *app) reportRebasing(r rebasing) error {
	if a.asJSON {
		return a.json(r)
	}
	if !r.Done {
		answer := "no"
		if r.Foreign {
			answer = "yes"
		}
		_, err := fmt.Fprintf(a.out, "ledger from another database: %s\n", answer)
		return err
	}
	rows := [][]string{{"FEED", "KEPT"}}
	for _, f := range r.Feeds {
		rows = append(rows, []string{f.Feed, strconv.FormatInt(f.Unsettled, 10)})
	}
	return a.table(rows)
}
