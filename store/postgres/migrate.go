package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
)

//go:embed migration/*.sql
var migrationFiles embed.FS

// migrations are in order; the version of each is its index plus one.
var migrations = []string{"001_log", "002_enqueue", "003_relay", "004_retention", "005_deferred", "006_operator", "007_lanes",
	"008_inbox", "009_idempotency", "010_saga", "011_patrol", "012_console", "013_claim_keys",
}

// SchemaVersion is the version of the tables and functions that this package works with.
func SchemaVersion() int { return len(migrations) }

// Migrator lays out the schema, version by version. Several may run at once: they wait for each other.
type Migrator struct {
	pool   *pgxpool.Pool
	script Script
}

// Migration is one step of the schema.
type Migration struct {
	Version   int       `json:"version"`
	Name      string    `json:"name"`
	Applied   bool      `json:"applied"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// NewMigrator returns a migrator that connects through pool. The layout is used by the first migration alone.
func NewMigrator(pool *pgxpool.Pool, cfg Config, layout Layout) (*Migrator, error) {
	script, err := NewScript(cfg, layout)
	return &Migrator{pool, script}, err
}

// Up applies what is missing, all in one transaction, and returns it.
func (m *Migrator) Up(ctx context.Context) ([]Migration, error) {
	var done []Migration
	err := m.locked(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, m.script.prologue(), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		all, err := m.status(ctx, tx)
		if err != nil {
			return err
		}
		for _, step := range all {
			if step.Applied {
				continue
			}
			if err := m.run(ctx, tx, m.script.Up(step.Version)); err != nil {
				return fmt.Errorf("migration %d (%s) up: %w", step.Version, step.Name, err)
			}
			done = append(done, step)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return done, nil
}

// Down takes the schema back to the given version, all in one transaction, and returns what it undid, newest first.
// Version 0 removes every table, with the messages in them.
func (m *Migrator) Down(ctx context.Context, to int) ([]Migration, error) {
	if to < 0 || to > len(migrations) {
		return nil, fmt.Errorf("postgres: there is no version %d: want 0 to %d", to, len(migrations))
	}
	var undone []Migration
	err := m.locked(ctx, func(tx pgx.Tx) error {
		all, err := m.status(ctx, tx)
		if err != nil {
			return err
		}
		for i := len(all) - 1; i >= to; i-- {
			if !all[i].Applied {
				continue
			}
			if err := m.run(ctx, tx, m.script.Down(all[i].Version)); err != nil {
				return fmt.Errorf("migration %d (%s) down: %w", all[i].Version, all[i].Name, err)
			}
			undone = append(undone, all[i])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return undone, nil
}

// Status returns every migration this package knows, applied or not, oldest first.
func (m *Migrator) Status(ctx context.Context) ([]Migration, error) {
	var all []Migration
	err := m.locked(ctx, func(tx pgx.Tx) (err error) {
		all, err = m.status(ctx, tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return all, nil
}

// Roles creates the roles of producers, relays, consumers and operators if they are missing and grants them what they need. It takes the right to
// create roles.
func (m *Migrator) Roles(ctx context.Context) error {
	err := m.locked(ctx, func(tx pgx.Tx) error { return m.run(ctx, tx, m.script.Roles()) })
	if err != nil {
		return fmt.Errorf("postgres: roles: %w", err)
	}
	return nil
}

// SetRing gives the ring of the log other numbers of slots and another period, while everything runs. Messages stay where they are: a slot that is
// no longer of the ring is emptied when every feed has passed it.
func (m *Migrator) SetRing(ctx context.Context, slots int, period time.Duration) error {
	layout, err := Layout{Slots: slots, Period: period}.withDefaults()
	if err != nil {
		return err
	}
	err = m.locked(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, m.script.cfg.in("SELECT @schema@.set_ring($1, $2)"), pgx.QueryExecModeExec, layout.Slots, int(layout.Period/time.Second))
		return err
	})
	if err != nil {
		return fmt.Errorf("postgres: ring: %w", explain(err))
	}
	return nil
}

// locked runs f in a transaction that no other migrator of this schema shares.
func (m *Migrator) locked(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, m.pool, readCommitted, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
			pgx.QueryExecModeExec, "postrider migrator of "+m.script.cfg.Schema)
		if err != nil {
			return err
		}
		return f(tx)
	})
}

// run sends several statements at once, which only the simple protocol allows.
func (m *Migrator) run(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
	return err
}

func (m *Migrator) status(ctx context.Context, tx pgx.Tx) ([]Migration, error) {
	all := make([]Migration, len(migrations))
	for i, name := range migrations {
		all[i] = Migration{Version: i + 1, Name: strings.TrimLeft(name, "0123456789_")}
	}
	var exists bool
	err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", pgx.QueryExecModeExec,
		m.script.cfg.in("@schema@.migrations")).Scan(&exists)
	if err != nil || !exists {
		return all, err
	}
	rows, err := tx.Query(ctx, m.script.cfg.in("SELECT version, applied_at FROM @schema@.migrations ORDER BY version"),
		pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	var version int
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&version, &at}, func() error {
		if version < 1 || version > len(all) {
			return fmt.Errorf("%w: the database has version %d, this program knows %d: use a newer program",
				postrider.ErrSchema, version, len(all))
		}
		all[version-1].Applied, all[version-1].AppliedAt = true, at
		return nil
	})
	return all, err
}

// checkVersion returns ErrSchema, with the next command to type, unless the schema is the one this package needs.
func checkVersion(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	var version int
	err := pool.QueryRow(ctx, cfg.in("SELECT coalesce(max(version), 0) FROM @schema@.migrations"),
		pgx.QueryExecModeExec).Scan(&version)
	err = explain(err)
	switch {
	case errors.Is(err, postrider.ErrSchema):
		version = 0
	case err != nil:
		return err
	}
	switch {
	case version < len(migrations):
		return fmt.Errorf("%w: schema %q has version %d, need %d; run: postrider migrate up --schema %s",
			postrider.ErrSchema, cfg.Schema, version, len(migrations), cfg.Schema)
	case version > len(migrations):
		return fmt.Errorf("%w: schema %q has version %d, this program knows %d: use a newer program",
			postrider.ErrSchema, cfg.Schema, version, len(migrations))
	}
	return nil
}
