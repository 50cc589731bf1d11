package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "migrate",
		Short: "Create, upgrade or remove the tables",
		Example: "  postrider migrate up\n" +
			"  postrider migrate print > migrations/042_postrider.sql\n" +
			"  postrider migrate up --dsn mysql://app@localhost/shop",
	})
	cmd.AddCommand(a.migrateUpCommand(), a.migrateDownCommand(), a.migrateStatusCommand(), a.migratePrintCommand(), a.migrateRingCommand())
	return cmd
}

// migration is the JSON output of the subcommands of migrate.
type migration struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"` // after the command
	Newest  int    `json:"newest"`
	*postgres.State
}

// withMigrator calls f with a migrator and its pool.
func (a *app) withMigrator(ctx context.Context, layout postgres.Layout, f func(*pgxpool.Pool, *postgres.Migrator) error) error {
	pool, err := a.db.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := a.db.log(pool)
	if err != nil {
		return err
	}
	migrator, err := db.Migrator(layout)
	if err != nil {
		return usageError{err}
	}
	return f(pool, migrator)
}

func (a *app) migrateStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the versions of the tables, and which are applied",
		Long: "Lists all versions of the tables that this program knows, and compares the functions with those of this program.\n" +
			"Exits with 5 if \"migrate up\" has something to do.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.db.isClassic() {
				return a.classicStatus(cmd.Context())
			}
			return a.withMigrator(cmd.Context(), postgres.Layout{}, func(_ *pgxpool.Pool, m *postgres.Migrator) error {
				state, err := m.State(cmd.Context())
				if err != nil {
					return err
				}
				if err := a.reportMigrations(state); err != nil || state.Current() {
					return err
				}
				finding := fmt.Sprintf("has version %d of %d", state.Version(), len(state.Migrations))
				if state.Version() == len(state.Migrations) {
					finding = "does not have the functions of this program"
				}
				return a.db.hintMigrate(fmt.Errorf("%w: schema %q %s", feeds.ErrSchema, a.db.schema, finding))
			})
		},
	}
}

// reportMigrations prints the applied migrations.
func (a *app) reportMigrations(state *postgres.State) error {
	if a.asJSON {
		return a.json(migration{a.db.schema, state.Version(), postgres.SchemaVersion(), state})
	}
	rows := [][]string{{"VERSION", "APPLIED"}}
	for _, m := range state.Migrations {
		applied := "no"
		if m.Applied {
			applied = m.AppliedAt.Format(time.RFC3339)
		}
		rows = append(rows, []string{strconv.Itoa(m.Version), applied})
	}
	functions := "not those of this program"
	switch {
	case state.Functions.Same:
		functions = "those of this program"
	case state.Functions.Newer:
		functions = "those of a newer program"
	case state.Functions.Version == 0:
		functions = "no"
	}
	return a.table(append(rows, []string{"functions", functions}))
}
