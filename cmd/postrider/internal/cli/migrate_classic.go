package cli

import (
	"context"
	"fmt"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
)

// classicMigration is the JSON output of the subcommands of migrate for the classic engine.
type classicMigration struct {
	Engine  string `json:"engine"`
	Dialect string `json:"dialect"`
	Schema  string `json:"schema,omitempty"`
	Version int    `json:"version"` // after the command
	Newest  int    `json:"newest"`
}

// withClassicMigrator calls f with a migrator.
func (a *app) withClassicMigrator(ctx context.Context, f func(*table.Migrator, table.Config) error) error {
	cfg, err := a.db.classicStore()
	if err != nil {
		return usageError{err}
	}
	db, err := a.db.openTable(ctx, poolSize)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is left to say
	opened, err := table.Open(db, cfg)
	if err != nil {
		return usageError{err}
	}
	return f(opened.Migrator(), cfg)
}

func (a *app) classicUp(ctx context.Context) error {
	return a.withClassicMigrator(ctx, func(m *table.Migrator, cfg table.Config) error {
		from, err := m.Up(ctx)
		if err != nil {
			return err
		}
		newest := table.SchemaVersion(cfg.Dialect)
		a.notef("%d migrations applied", max(newest-from, 0))
		return a.reportClassic(cfg, max(newest, from))
	})
}

func (a *app) classicStatus(ctx context.Context) error {
	return a.withClassicMigrator(ctx, func(m *table.Migrator, cfg table.Config) error {
		version, err := m.Version(ctx)
		if err != nil {
			return err
		}
		newest := table.SchemaVersion(cfg.Dialect)
		if err := a.reportClassic(cfg, version); err != nil || version >= newest {
			return err
		}
		return a.db.hintMigrate(fmt.Errorf("%w: the tables have version %d of %d", feeds.ErrSchema, version, newest))
	})
}

func (a *app) classicPrint() error {
	cfg, err := a.db.classicStore()
	if err != nil {
		return usageError{err}
	}
	script, err := table.Script(cfg)
	if err != nil {
		return usageError{err}
	}
	if a.asJSON {
		return a.json(printed{cfg.Schema, 0, table.SchemaVersion(cfg.Dialect), script})
	}
	_, err = fmt.Fprint(a.out, script)
	return err
}

// classicDown removes or downgrades postrider's own tables. It does not touch an adopted table.
func (a *app) classicDown(ctx context.Context, to int, d danger) error {
	return a.withClassicMigrator(ctx, func(m *table.Migrator, cfg table.Config) error {
		from, err := m.Version(ctx)
		if err != nil {
			return err
		}
		plan := undoing{Schema: cfg.Schema, From: from, To: to}
		if from <= to {
			a.notef("the tables have version %d: nothing to undo", from)
			return a.reportUndoing(plan)
		}
		if d.dryRun {
			return a.reportUndoing(plan)
		}
		err = a.confirm(d, fmt.Sprintf("Downgrade the tables of the classic engine from version %d to %d? Version 0 removes them, with all messages of "+
			"postrider's own outbox and all deferred messages.", from, to))
		if err != nil {
			return err
		}
		if err := m.Down(ctx, to); err != nil {
			return err
		}
		plan.Done = true
		return a.reportUndoing(plan)
	})
}

func (a *app) reportClassic(cfg table.Config, version int) error {
	r := classicMigration{"classic", string(cfg.Dialect), cfg.Schema, version, table.SchemaVersion(cfg.Dialect)}
	if a.asJSON {
		return a.json(r)
	}
	_, err := fmt.Fprintf(a.out, "engine classic on %s: version %d of %d\n", r.Dialect, r.Version, r.Newest)
	return err
}
