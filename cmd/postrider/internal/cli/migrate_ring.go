package cli

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/store/postgres"
)

// ring describes the partitions that hold messages in the log.
type ring struct {
	Schema string `json:"schema"`
	Slots  int    `json:"slots"`
	Period string `json:"period"`
	Keeps  string `json:"keeps"` // how long delivered messages are kept, approximately
}

func (a *app) migrateRingCommand() *cobra.Command {
	var layout postgres.Layout
	cmd := &cobra.Command{
		Use:   "ring --slots NUMBER --period DURATION",
		Short: "Change how long the log keeps delivered messages",
		Long: "The log is a ring of slots. Each slot is written for one period, and emptied before its next turn if every feed has delivered all of it.\n" +
			"This command changes slots and period while everything runs. Messages stay where they are. It needs the rights of the schema's owner.\n\n" +
			"--json prints an object with: schema, slots, period, keeps.",
		Example: "  postrider migrate ring --slots 8 --period 6h",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.db.isClassic() {
				return usagef("a table has no ring: its retention is set in the configuration")
			}
			if !cmd.Flags().Changed("slots") || !cmd.Flags().Changed("period") {
				return usagef("add --slots and --period")
			}
			return a.withMigrator(cmd.Context(), layout, func(_ *pgxpool.Pool, m *postgres.Migrator) error {
				if err := m.SetRing(cmd.Context(), layout.Slots, layout.Period); err != nil {
					return a.db.explain(err)
				}
				r := ring{a.db.schema, layout.Slots, layout.Period.String(), (layout.Period * time.Duration(layout.Slots-1)).String()}
				if a.asJSON {
					return a.json(r)
				}
				_, err := fmt.Fprintf(a.out, "the log has %d slots of %s: delivered messages are kept for about %s\n", r.Slots, r.Period, r.Keeps)
				return err
			})
		},
	}
	cmd.Flags().IntVar(&layout.Slots, "slots", 0, "partitions of the ring, 3 to 128")
	cmd.Flags().DurationVar(&layout.Period, "period", 0, "how long one slot is written, in whole seconds")
	return cmd
}
