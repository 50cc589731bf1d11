package table

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

//go:embed migration
var files embed.FS

// Migrator lays out Postrider's own tables: the outbox of our own, which may stay empty, and those that say who carries what.
type Migrator struct {
	db  *sql.DB
	cfg Config
}

// SchemaVersion is the version that this program works with.
func SchemaVersion(d Dialect) int { return len(steps(d, "up")) }

// Up brings the tables to this program's version, and returns the version that they had. Several may do it at once.
func (m *Migrator) Up(ctx context.Context) (from int, err error) {
	if err := m.begin(ctx); err != nil {
		return 0, fmt.Errorf("table: migrate: %w", err)
	}
	from, err = version(ctx, m.db, m.cfg)
	if err != nil {
		return 0, err
	}
	for n, name := range steps(m.cfg.Dialect, "up") {
		if n < from {
			continue
		}
		err := m.step(ctx, name, `INSERT INTO {migrations} (version) VALUES (?)`, n+1)
		if err != nil && !sqltext.IsDuplicate(err) { // somebody else has done it meanwhile
			return from, err
		}
	}
	return from, nil
}

// Down takes the tables back to a version. 0 removes them all, with everything in them.
func (m *Migrator) Down(ctx context.Context, to int) error {
	at, err := version(ctx, m.db, m.cfg)
	if err != nil {
		return err
	}
	names := steps(m.cfg.Dialect, "down")
	for n := min(at, len(names)); n > to; n-- {
		if err := m.step(ctx, names[n-1], `DELETE FROM {migrations} WHERE version = ?`, n); err != nil {
			return err
		}
	}
	if to == 0 {
		_, err = m.db.ExecContext(ctx, m.cfg.own().In(`DROP TABLE {migrations}`))
	}
	return err
}

// Version returns how far the tables are laid out; 0 means not at all.
func (m *Migrator) Version(ctx context.Context) (int, error) { return version(ctx, m.db, m.cfg) }

const createMigrations = `CREATE TABLE IF NOT EXISTS {migrations} (version integer NOT NULL PRIMARY KEY)`

// begin creates the table that says how far the others are. PostgreSQL looks whether there is one, and then fails if another has
// created it meanwhile.
func (m *Migrator) begin(ctx context.Context) error {
	_, err := m.db.ExecContext(ctx, m.cfg.own().In(createMigrations))
	if sqltext.IsThere(err) {
		_, err = m.db.ExecContext(ctx, m.cfg.own().In(createMigrations))
	}
	return err
}

// Script returns the statements that Up would run on an empty database, for those who bring them there by other means. It needs no
// database.
func Script(cfg Config) (string, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return "", err
	}
	return (&Migrator{cfg: cfg}).Script(), nil
}

// Script is [Script] for the migrator's own configuration.
func (m *Migrator) Script() string {
	var b strings.Builder
	b.WriteString(m.cfg.own().In(createMigrations) + ";\n\n")
	for n, name := range steps(m.cfg.Dialect, "up") {
		b.WriteString(m.text(name))
		b.WriteString(m.cfg.own().In(fmt.Sprintf("INSERT INTO {migrations} (version) VALUES (%d)", n+1)) + ";\n\n")
	}
	return b.String()
}

// step runs the statements of a file and notes that it has. PostgreSQL does all of it or nothing, and the note, which comes first,
// keeps others out. MySQL commits each definition of a table by itself: there the statements can be repeated, and the note comes
// last.
func (m *Migrator) step(ctx context.Context, name, note string, n int) error {
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("table: migrate: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	run := func(statement string, args ...any) {
		if err != nil {
			return
		}
		if _, err = tx.ExecContext(ctx, statement, args...); err != nil {
			first, _, _ := strings.Cut(statement, "\n")
			err = fmt.Errorf("table: migrate: %s: %s: %w", path.Base(name), first, err)
		}
	}
	if m.cfg.Dialect == sqltext.PostgreSQL {
		run(m.cfg.own().In(note), n)
	}
	for _, statement := range statementsOf(m.text(name)) {
		run(statement)
	}
	if m.cfg.Dialect == sqltext.MySQL {
		run(m.cfg.own().In(note), n)
	}
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("table: migrate: %w", err)
	}
	return nil
}

func (m *Migrator) text(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is in the program
	}
	return m.cfg.own().In(strings.ReplaceAll(string(data), "{prefix}", m.cfg.Prefix))
}

// statementsOf splits a script where a line ends with a semicolon, but not inside of a function, and leaves comments out.
func statementsOf(script string) []string {
	var all []string
	var b strings.Builder
	for line := range strings.Lines(script) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") && strings.Count(b.String(), "$$")%2 == 0 {
			all = append(all, strings.TrimSuffix(strings.TrimSpace(b.String()), ";"))
			b.Reset()
		}
	}
	return all
}

// steps returns the names of a dialect's migration files in their order.
func steps(d Dialect, direction string) []string {
	entries, err := files.ReadDir("migration/" + string(d))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "."+direction+".sql") {
			names = append(names, "migration/"+string(d)+"/"+e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// version returns how far the tables are laid out; 0 also where there are none.
func version(ctx context.Context, db *sql.DB, cfg Config) (int, error) {
	var n int
	err := db.QueryRowContext(ctx, cfg.own().In(`SELECT coalesce(max(version), 0) FROM {migrations}`)).Scan(&n)
	switch {
	case sqltext.IsMissingTable(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("table: version of the tables: %w", err)
	}
	return n, nil
}

// checkVersion returns [feeds.ErrSchema] unless the tables are laid out for this program.
func checkVersion(ctx context.Context, db *sql.DB, cfg Config) error {
	at, err := version(ctx, db, cfg)
	if err != nil {
		return err
	}
	if want := SchemaVersion(cfg.Dialect); at < want {
		command := strings.TrimSpace("postrider migrate up " + cfg.CommandFlags)
		return fmt.Errorf("%w: the tables %s* have version %d, need %d; run: %s", feeds.ErrSchema, cfg.Prefix, at, want, command)
	}
	return nil
}
