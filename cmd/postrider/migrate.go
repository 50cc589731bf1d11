package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "migrate",
		Short: "Lay out the log in a database, bring it up to date, or take it away",
		Example: "  postrider migrate up\n" +
			"  postrider migrate print > migrations/042_postrider.sql\n" +
			"  postrider migrate up --dsn mysql://app@localhost/shop",
	})
	cmd.AddCommand(a.migrateUpCommand(), a.migrateDownCommand(), a.migrateStatusCommand(), a.migratePrintCommand(), a.migrateRingCommand())
	return cmd
}

// migration is what the commands below migrate report.
type migration struct {
	Schema     string               `json:"schema"`
	Version    int                  `json:"version"` // after the command
	Newest     int                  `json:"newest"`
	Migrations []postgres.Migration `json:"migrations"`
}

// withMigrator lends f a migrator, and the pool that it uses.
func (a *app) withMigrator(ctx context.Context, layout postgres.Layout, f func(*pgxpool.Pool, *postgres.Migrator) error) error {
	pool, err := a.db.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := postgres.NewMigrator(pool, a.db.store(), layout)
	if err != nil {
		return usageError{err}
	}
	return f(pool, migrator)
}

func (a *app) migrateStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the migrations, and which are applied",
		Long:  "Lists all migrations that this program knows. Exits with 5 unless all are applied.",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.db.isClassic() {
				return a.classicStatus(cmd.Context())
			}
			return a.withMigrator(cmd.Context(), postgres.Layout{}, func(_ *pgxpool.Pool, m *postgres.Migrator) error {
				all, err := m.Status(cmd.Context())
				if err != nil {
					return err
				}
				version := versionOf(all)
				if err := a.reportMigrations(version, all); err != nil || version == len(all) {
					return err
				}
				return a.db.hintMigrate(fmt.Errorf("%w: schema %q has version %d of %d", postrider.ErrSchema, a.db.schema, version,
					len(all)))
			})
		},
	}
}

// versionOf is how far the schema has come without a gap.
func versionOf(all []postgres.Migration) int {
	for i, m := range all {
		if !m.Applied {
			return i
		}
	}
	return len(all)
}

// reportMigrations prints migrations, and the version that the schema has now.
func (a *app) reportMigrations(version int, migrations []postgres.Migration) error {
	if a.asJSON {
		if migrations == nil {
			migrations = []postgres.Migration{} // an empty list, not null
		}
		return a.json(migration{a.db.schema, version, postgres.SchemaVersion(), migrations})
	}
	rows := [][]string{{"VERSION", "NAME", "APPLIED"}}
	for _, m := range migrations {
		applied := "no"
		if m.Applied {
			applied = m.AppliedAt.Format(time.RFC3339)
		}
		rows = append(rows, []string{strconv.Itoa(m.Version), m.Name, applied})
	}
	return a.table(rows)
}
