package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/store/postgres"
)

// undoing is the result of "migrate down", or of its dry run.
type undoing struct {
	Schema      string `json:"schema"`
	From        int    `json:"from"`
	To          int    `json:"to"`
	Messages    int64  `json:"messages"`    // removed
	Undelivered int64  `json:"undelivered"` // those that a feed has not delivered
	Done        bool   `json:"done"`
}

func (a *app) migrateDownCommand() *cobra.Command {
	var d danger
	to := -1
	cmd := &cobra.Command{
		Use:   "down --to VERSION",
		Short: "Downgrade the tables; version 0 removes all messages",
		Example: "  postrider migrate down --to 0 --dry-run\n" +
			"  postrider migrate down --to 0 --yes",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to >= 0 && a.db.isClassic() {
				return a.classicDown(cmd.Context(), to, d)
			}
			if to < 0 || to > postgres.SchemaVersion() {
				return usagef("--to is missing or out of range: want 0 to %d, where 0 removes everything", postgres.SchemaVersion())
			}
			return a.withMigrator(cmd.Context(), postgres.Layout{}, func(pool *pgxpool.Pool, m *postgres.Migrator) error {
				return a.migrateDown(cmd.Context(), pool, m, to, d)
			})
		},
	}
	cmd.Flags().IntVar(&to, "to", -1, "version to go back to")
	d.addFlags(cmd)
	return cmd
}

func (a *app) migrateDown(ctx context.Context, pool *pgxpool.Pool, m *postgres.Migrator, to int, d danger) error {
	state, err := m.State(ctx)
	if err != nil {
		return err
	}
	plan := undoing{Schema: a.db.schema, From: state.Version(), To: to}
	if plan.From <= to {
		a.notef("schema %q has version %d: nothing to undo", a.db.schema, plan.From)
		return a.reportUndoing(plan)
	}
	if to == 0 { // the first migration created the tables
		if plan.Messages, plan.Undelivered, err = a.countMessages(ctx, pool); err != nil {
			return err
		}
	}
	if d.dryRun {
		return a.reportUndoing(plan)
	}
	question := fmt.Sprintf("Downgrade schema %q from version %d to %d, removing %d messages, %d of them undelivered?",
		plan.Schema, plan.From, plan.To, plan.Messages, plan.Undelivered)
	if err := a.confirm(d, question); err != nil {
		return err
	}
	if _, err := m.Down(ctx, to); err != nil {
		return err
	}
	plan.Done = true
	return a.reportUndoing(plan)
}

// countMessages returns how many messages the log holds, and how many of them at least one feed has
// not delivered. Without a feed all messages count as undelivered.
func (a *app) countMessages(ctx context.Context, pool *pgxpool.Pool) (all, undelivered int64, err error) {
	err = pool.QueryRow(ctx, a.db.in(`WITH c AS MATERIALIZED (SELECT * FROM @schema@.cursors)
		SELECT count(*), count(*) FILTER (WHERE NOT EXISTS (SELECT FROM c) OR EXISTS (
		  SELECT FROM c WHERE c.base = @schema@.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, c.shards) AND NOT @schema@.settled(m.xid, m.seq, c.s1, c.s2, c.last)))
		FROM @schema@.messages m`)).Scan(&all, &undelivered)
	return all, undelivered, a.db.explain(err)
}

func (a *app) reportUndoing(u undoing) error {
	if a.asJSON {
		return a.json(u)
	}
	verb := "would go"
	if u.Done {
		verb = "went"
	}
	if u.From <= u.To {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "schema %s %s from version %d to %d; messages removed: %d, of these undelivered: %d\n",
		u.Schema, verb, u.From, u.To, u.Messages, u.Undelivered)
	return err
}
