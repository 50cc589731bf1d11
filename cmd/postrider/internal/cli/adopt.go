package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/mysql"
)

// adoption is the output of "postrider adopt".
type adoption struct {
	Table *adopt.Table `json:"table"`
	*adopt.Proposal
	Config string   `json:"config"` // a working configuration file
	Next   []string `json:"next"`   // commands
}

func (a *app) adoptCommand() *cobra.Command {
	var preset string
	var onlySQL bool
	var log *toLog
	cmd := &cobra.Command{
		Use:   "adopt TABLE",
		Short: "Propose how to relay an outbox table that exists already",
		Long: "Looks at an outbox table that an application has already, in PostgreSQL, MySQL or MariaDB, and proposes a configuration\n" +
			"for it: which column is what, and what the words of its status mean. It says what the table lacks, with the SQL that\n" +
			"adds it, and what it cannot give, such as an order. Nothing is changed, and producers stay as they are.\n\n" +
			"The standard output is a configuration file; the rest goes to the standard error. TABLE may have a schema and a dot in\n" +
			"front. Tables that are known: " + strings.Join(presetNames(), ", ") + ".\n\n" +
			"--json prints an object with: table (columns, indexes, rows, words), preset, missing (what, why, sql, optional),\n" +
			"warnings (about, text), unused, config and next.\n\n" + toLogHelp,
		Example: "  postrider adopt outbox_events > postrider.yaml\n" +
			"  postrider adopt Outbox --preset prisma --dsn mysql://app@localhost/shop\n" +
			"  postrider adopt shop.outbox --sql | psql\n" +
			"  postrider adopt outbox_events --to-log --dry-run",
		Args: named("table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if log.asked() {
				return a.adoptToLog(cmd.Context(), log, args[0], preset)
			}
			found, err := a.proposal(cmd.Context(), args[0], preset)
			if err != nil {
				return err
			}
			if onlySQL {
				return a.printRemedies(found.Missing)
			}
			return a.reportAdoption(found)
		},
	}
	cmd.Flags().StringVar(&preset, "preset", "", "kind of table that it is; default: the one that its columns look like")
	cmd.Flags().BoolVar(&onlySQL, "sql", false, "print only the SQL for what is missing and needed")
	log = a.addToLog(cmd)
	return cmd
}

func presetNames() []string {
	var names []string
	for _, p := range adopt.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// proposal inspects the table and proposes a layout.
func (a *app) proposal(ctx context.Context, tableName, preset string) (*adoption, error) {
	if _, ok := adopt.PresetNamed(preset); !ok && preset != "" {
		return nil, usagef("--preset is %q: want one of %s", preset, strings.Join(presetNames(), ", "))
	}
	db, err := a.db.openTable(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // was only read
	dialect := table.PostgreSQL
	if a.db.isMySQL() {
		dialect = table.MySQL
	}
	found, err := adopt.Inspect(ctx, db, dialect, tableName)
	if errors.Is(err, adopt.ErrNoTable) {
		return nil, hintedError{err, "names are as the database has them, such as Outbox; with a schema: shop.outbox"}
	}
	if err != nil {
		return nil, err
	}
	adopted := &adoption{Table: found}
	if preset == "" {
		adopted.Proposal, err = adopt.Propose(found)
	} else {
		adopted.Proposal, err = adopt.ProposeAs(found, preset)
	}
	if err != nil {
		return nil, err
	}
	adopted.Config, err = a.adoptedConfig(adopted.Proposal)
	adopted.Next = []string{"postrider migrate up --database " + a.adoptedName(), "postrider relay"}
	return adopted, err
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// adoptedName returns the name of the database in the proposed file: the name that it has on the
// server, if that is a valid name.
func (a *app) adoptedName() string {
	name := "app"
	if cfg, err := mysql.ParseURL(a.db.address()); err == nil {
		name = cfg.DBName
	} else if cfg, err := a.db.pgConfig(); err == nil && cfg.ConnConfig.Database != "" {
		name = cfg.ConnConfig.Database
	}
	name = strings.Trim(notInNames.ReplaceAllString(name, "_"), "_-")
	if name == "" || len(name) > 63 {
		return "app"
	}
	return name
}

// adoptedConfig returns a file that relays the table's messages, to the standard output until
// $DESTINATION_URL is set.
func (a *app) adoptedConfig(p *adopt.Proposal) (string, error) {
	d := config.Database{URL: "${DATABASE_URL}", Engine: config.EngineClassic, Table: tableOf(p.Layout, p.Preset)}
	section, err := d.YAML(a.adoptedName())
	if err != nil {
		return "", err
	}
	return string(section) + "destinations:\n  out: {url: \"${DESTINATION_URL:-stdout:}\"}\nfeeds:\n  default: {}\n", nil
}

func (a *app) printRemedies(missing []adopt.Remedy) error {
	for _, r := range missing {
		if r.Optional {
			continue
		}
		if _, err := fmt.Fprintln(a.out, r.SQL); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) reportAdoption(found *adoption) error {
	if a.asJSON {
		return a.json(found)
	}
	if _, err := fmt.Fprint(a.out, found.Config); err != nil {
		return err
	}
	kind := "by what its columns are called"
	if found.Preset != "" {
		kind = "as " + found.Preset
	}
	a.notef("table %s was understood %s; about %s", cell(found.Table.Name, true), kind, phrase.Quantity(int(found.Table.Rows), "row", "rows"))
	if len(found.Unused) > 0 {
		a.notef("columns that are not used: %s", cell(strings.Join(found.Unused, ", "), true))
	}
	for _, r := range found.Missing {
		need := "missing"
		if r.Optional {
			need = "could be added"
		}
		a.say(fmt.Sprintf("%s: %s. %s\n  %s\n", need, r.What, r.Why, cell(r.SQL, true)))
	}
	for _, w := range found.Warnings {
		a.say(fmt.Sprintf("warning: %s: %s\n", w.About, cell(w.Text, true)))
	}
	a.say("next, with this as postrider.yaml and $DATABASE_URL set:\n")
	for _, line := range found.Next {
		a.say("  " + line + "\n")
	}
	return nil
}
