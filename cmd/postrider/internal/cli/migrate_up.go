package cli

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/store/postgres"
)

// addLayoutFlags adds the flags for what the first migration fixes.
func addLayoutFlags(flags *pflag.FlagSet, layout *postgres.Layout) {
	flags.IntVar(&layout.Shards, "shards", 8, "parts of the log that relays can share, by key")
	flags.IntVar(&layout.Slots, "slots", 8, "partitions of the ring; delivered messages are kept for slots - 1 periods")
	flags.DurationVar(&layout.Period, "period", 24*time.Hour, "how long one slot is written before the next")
	flags.DurationVar(&layout.InboxWindow, "inbox-window", 7*24*time.Hour, "how long consumers remember what they have received, at least")
}

func (a *app) migrateUpCommand() *cobra.Command {
	var layout postgres.Layout
	var roles bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply pending migrations and replace the functions",
		Long: "Applies the missing versions of the tables and replaces all functions, in one transaction and while everything runs.\n" +
			"Several may run at once: they wait for each other. The functions of a newer program stay.\n" +
			"Shards of new feeds, slots, period and inbox window are fixed the first time. If you use the roles, add --roles each time:\n" +
			"new functions need their rights.",
		Example: "  postrider migrate up --shards 16 --roles",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if a.db.isClassic() {
				for _, flag := range []string{"shards", "slots", "period", "inbox-window", "roles"} {
					if cmd.Flags().Changed(flag) {
						return usagef("--%s is for the log: the classic engine does not have it", flag)
					}
				}
				return a.classicUp(ctx)
			}
			return a.withMigrator(ctx, layout, func(pool *pgxpool.Pool, m *postgres.Migrator) error {
				applied, err := m.Up(ctx)
				if err != nil {
					return err
				}
				a.notef("%d migrations applied", len(applied))
				if roles {
					if err := m.Roles(ctx); err != nil {
						return err
					}
					a.notef("roles %[1]s_producer, %[1]s_consumer, %[1]s_relay and %[1]s_operator may be granted to your users", a.db.schema)
				}
				if err := a.compareLayout(ctx, pool, cmd.Flags(), layout); err != nil {
					return err
				}
				state, err := m.State(ctx)
				if err != nil {
					return err
				}
				if state.Functions.Newer {
					a.notef("the functions are from a newer program, and stay")
				}
				return a.reportMigrations(state)
			})
		},
	}
	addLayoutFlags(cmd.Flags(), &layout)
	cmd.Flags().BoolVar(&roles, "roles", false, "also create the roles for producers, consumers, relays and operators, with the rights they need")
	return cmd
}

// compareLayout prints a note if the user asked for another layout than the existing one.
func (a *app) compareLayout(ctx context.Context, pool *pgxpool.Pool, flags *pflag.FlagSet, asked postgres.Layout) error {
	var shards, slots int
	err := pool.QueryRow(ctx, a.db.in(`SELECT pg_get_expr(d.adbin, d.adrelid)::integer, @schema@.slot_count()
		FROM pg_attribute t JOIN pg_attrdef d ON d.adrelid = t.attrelid AND d.adnum = t.attnum
		WHERE t.attrelid = '@schema@.feeds'::regclass AND t.attname = 'shards'`)).Scan(&shards, &slots)
	if err != nil {
		return a.db.explain(err)
	}
	if flags.Changed("shards") && shards != asked.Shards || flags.Changed("slots") && slots != asked.Slots {
		a.notef("the log exists, with %d shards for a new feed and %d slots, and keeps them; to change it: %s, %s",
			shards, slots, a.next("feeds shards"), a.next("migrate ring"))
	}
	return nil
}
