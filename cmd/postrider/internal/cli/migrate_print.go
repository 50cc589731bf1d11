package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/store/postgres"
)

// printed is the JSON output of "migrate print".
type printed struct {
	Schema string `json:"schema"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	SQL    string `json:"sql"`
}

func (a *app) migratePrintCommand() *cobra.Command {
	var layout postgres.Layout
	var roles bool
	var from int
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the SQL, for another migration tool",
		Long: "Prints the SQL that upgrades an empty database, or an older version, to the newest. Needs no database.\n" +
			"The functions are always part of it: they can be created again at any time.",
		Example: "  postrider migrate print > migrations/042_postrider.sql\n" +
			"  postrider migrate print --from 1 > migrations/057_postrider_upgrade.sql",
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if a.db.isClassic() {
				return a.classicPrint()
			}
			if from < 0 || from > postgres.SchemaVersion() {
				return usagef("--from is %d: want 0 to %d", from, postgres.SchemaVersion())
			}
			script, err := postgres.NewScript(a.db.store(), layout)
			if err != nil {
				return usageError{err}
			}
			sql := printScript(script, from, roles)
			if a.asJSON {
				return a.json(printed{a.db.schema, from, postgres.SchemaVersion(), sql})
			}
			_, err = fmt.Fprint(a.out, sql)
			return err
		},
	}
	addLayoutFlags(cmd.Flags(), &layout)
	cmd.Flags().BoolVar(&roles, "roles", false, "also print the roles for producers and relays")
	cmd.Flags().IntVar(&from, "from", 0, "version that the database already has")
	return cmd
}

func printScript(script postgres.Script, from int, roles bool) string {
	var b strings.Builder
	if from == 0 {
		b.WriteString(script.All())
	}
	for version := from + 1; from > 0 && version <= postgres.SchemaVersion(); version++ {
		b.WriteString(script.Up(version) + "\n")
	}
	if from > 0 {
		b.WriteString(script.Functions())
	}
	if roles {
		b.WriteString("\n" + script.Roles())
	}
	return b.String()
}
