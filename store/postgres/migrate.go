package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/feeds"
)

// A schema has two parts. Tables have versions: each step of sql/schema is applied once, in order.
// Functions are code: every Up replaces all of them, so a release that changes only functions has
// no new version of the tables.

// needs has, for each version of the tables, the oldest version that a program must know to work
// with it. A version that only adds something repeats the number of the version before it, because
// older programs keep working.
var needs = []int{1}

const (
	// oldestSchema is the oldest version of the tables that this package works with.
	oldestSchema = 1
	// functionsVersion grows with each release that changes a function. An older program does not
	// replace the functions of a newer one.
	functionsVersion = 1
)

// SchemaVersion returns the newest version of the tables that this package knows.
func SchemaVersion() int { return len(needs) }

// Migrator creates and upgrades the schema, version by version. Several may run at once: they wait
// for each other.
type Migrator struct {
	pool   *pgxpool.Pool
	script Script
}

// Migration describes one version of the tables.
type Migration struct {
	Version   int       `json:"version"`
	Applied   bool      `json:"applied"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// Functions says which functions a schema has.
type Functions struct {
	Version int  `json:"version"` // 0 if there are none
	Newer   bool `json:"newer"`   // a newer program installed them, and Up keeps them
	Same    bool `json:"same"`    // this package installed them
}

// State says which version a schema has.
type State struct {
	Migrations []Migration `json:"migrations"` // those that this package knows and those that the database has, oldest first
	Functions  Functions   `json:"functions"`
	// Needs is the oldest version that a program must know to work with these tables.
	Needs int `json:"needs"`
}

// Version returns the newest version of the tables up to which none is missing.
func (s *State) Version() int {
	for i, m := range s.Migrations {
		if !m.Applied {
			return i
		}
	}
	return len(s.Migrations)
}

// Current reports whether there is nothing for Up to do.
func (s *State) Current() bool {
	return s.Version() == len(s.Migrations) && (s.Functions.Same || s.Functions.Newer)
}

// Up applies the missing versions and replaces the functions, all in one transaction. It returns
// the versions that were missing. It does not replace the functions of a newer program.
func (m *Migrator) Up(ctx context.Context) ([]Migration, error) {
	var done []Migration
	err := m.locked(ctx, func(tx pgx.Tx) error {
		if err := m.run(ctx, tx, m.script.prologue()); err != nil {
			return err
		}
		state, err := ReadState(ctx, tx, m.script.cfg)
		if err != nil {
			return err
		}
		for _, step := range state.Migrations {
			if step.Applied {
				continue
			}
			if err := m.run(ctx, tx, m.script.Up(step.Version)); err != nil {
				return fmt.Errorf("migration %d up: %w", step.Version, err)
			}
			done = append(done, step)
		}
		if state.Functions.Newer {
			return nil
		}
		if err := m.run(ctx, tx, m.script.Functions()); err != nil {
			return fmt.Errorf("functions: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return done, nil
}

// Down takes the schema back to the given version, all in one transaction, and returns what it
// undid, newest first. Version 0 removes every table, with its messages, and every function. Any
// other version keeps the functions: the program that knows that version replaces them with its own
// Up.
func (m *Migrator) Down(ctx context.Context, to int) ([]Migration, error) {
	if to < 0 || to > len(needs) {
		return nil, fmt.Errorf("postgres: there is no version %d: want 0 to %d", to, len(needs))
	}
	var undone []Migration
	err := m.locked(ctx, func(tx pgx.Tx) error {
		state, err := ReadState(ctx, tx, m.script.cfg)
		if err != nil {
			return err
		}
		if n := len(state.Migrations); n > len(needs) {
			return fmt.Errorf("%w: the database has version %d, this program knows %d: use a newer program", feeds.ErrSchema, n, len(needs))
		}
		for i := len(state.Migrations) - 1; i >= to; i-- {
			step := state.Migrations[i]
			if !step.Applied {
				continue
			}
			if err := m.run(ctx, tx, m.script.Down(step.Version)); err != nil {
				return fmt.Errorf("migration %d down: %w", step.Version, err)
			}
			undone = append(undone, step)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return undone, nil
}

// State returns the state of the schema.
func (m *Migrator) State(ctx context.Context) (*State, error) {
	var state *State
	err := m.locked(ctx, func(tx pgx.Tx) (err error) {
		state, err = ReadState(ctx, tx, m.script.cfg)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return state, nil
}

// Roles creates the roles of producers, relays, consumers and operators if they are missing, and
// grants them the rights they need. The user needs the right to create roles.
func (m *Migrator) Roles(ctx context.Context) error {
	err := m.locked(ctx, func(tx pgx.Tx) error { return m.run(ctx, tx, m.script.Roles()) })
	if err != nil {
		return fmt.Errorf("postgres: roles: %w", err)
	}
	return nil
}

// SetRing changes the number of slots and the period of the log's ring while everything runs.
// Messages stay where they are: a slot that is no longer part of the ring is emptied when every
// feed has passed it.
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

// locked runs f in a transaction that excludes every other migrator of this schema.
func (m *Migrator) locked(ctx context.Context, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, m.pool, readCommitted, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
			pgx.QueryExecModeExec, "postrider migrator of "+m.script.cfg.Schema)
		if err != nil {
			return err
		}
		// Locking a table discards the session's catalogue cache. Without that, a session that
		// looked for the schema before it waited for another migrator would try to create the
		// schema a second time.
		if _, err := tx.Exec(ctx, "SELECT FROM pg_catalog.pg_namespace LIMIT 0", pgx.QueryExecModeExec); err != nil {
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

// ReadState returns the state of the schema, as tx sees it.
func ReadState(ctx context.Context, tx pgx.Tx, cfg Config) (*State, error) {
	s := &State{Migrations: make([]Migration, len(needs))}
	for i := range s.Migrations {
		s.Migrations[i].Version = i + 1
	}
	var tables, functions bool
	err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL, to_regproc($2) IS NOT NULL", pgx.QueryExecModeExec,
		cfg.in("@schema@.migrations"), cfg.in("@schema@.functions_version")).Scan(&tables, &functions)
	if err != nil || !tables {
		return s, err
	}
	if functions {
		var digest string
		err := tx.QueryRow(ctx, cfg.in("SELECT version, digest FROM @schema@.functions_version()"), pgx.QueryExecModeExec).
			Scan(&s.Functions.Version, &digest)
		if err != nil {
			return nil, err
		}
		s.Functions.Newer = s.Functions.Version > functionsVersion
		s.Functions.Same = s.Functions.Version == functionsVersion && digest == functionsDigest()
	}
	rows, err := tx.Query(ctx, cfg.in("SELECT version, applied_at, needs FROM @schema@.migrations ORDER BY version"), pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	step, needed := Migration{Applied: true}, 0
	_, err = pgx.ForEachRow(rows, []any{&step.Version, &step.AppliedAt, &needed}, func() error {
		s.Needs = max(s.Needs, needed)
		if step.Version > len(needs) {
			s.Migrations = append(s.Migrations, step)
		} else {
			s.Migrations[step.Version-1] = step
		}
		return nil
	})
	return s, err
}

// checkVersion returns ErrSchema, with the next command to run, unless this package works with the
// schema.
func checkVersion(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	var version, needed int
	err := explain(pool.QueryRow(ctx, cfg.in("SELECT coalesce(max(version), 0), coalesce(max(needs), 0) FROM @schema@.migrations"),
		pgx.QueryExecModeExec).Scan(&version, &needed))
	switch {
	case errors.Is(err, feeds.ErrSchema):
		version = 0
	case err != nil:
		return err
	}
	switch {
	case version < oldestSchema:
		return fmt.Errorf("%w: schema %q has version %d, need %d; run: postrider migrate up %s",
			feeds.ErrSchema, cfg.Schema, version, oldestSchema, cfg.CommandFlags)
	case needed > len(needs):
		return fmt.Errorf("%w: schema %q has version %d, which needs a program that knows version %d; this one knows %d: use a newer program",
			feeds.ErrSchema, cfg.Schema, version, needed, len(needs))
	}
	return nil
}
