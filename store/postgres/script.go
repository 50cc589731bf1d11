package postgres

import (
	"fmt"
	"strings"
)

// Script is the schema as SQL text, for a [Migrator] or for the migration tool that a team already has.
type Script struct {
	cfg    Config
	layout Layout
}

// NewScript returns the script for one schema and layout.
func NewScript(cfg Config, layout Layout) (Script, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Script{}, err
	}
	layout, err = layout.withDefaults()
	return Script{cfg, layout}, err
}

// Up returns the statements that lead from version-1 to version. They can run in one transaction.
func (s Script) Up(version int) string {
	return s.render(version, "up") + s.cfg.in(fmt.Sprintf("\nINSERT INTO @schema@.migrations (version) VALUES (%d);\n", version))
}

// Down returns the statements that lead from version back to version-1.
func (s Script) Down(version int) string {
	return s.render(version, "down") + s.cfg.in(fmt.Sprintf("\nDELETE FROM @schema@.migrations WHERE version = %d;\n", version))
}

// All returns everything from an empty database to the newest version.
func (s Script) All() string {
	var b strings.Builder
	b.WriteString(s.prologue())
	for i := range migrations {
		b.WriteString("\n")
		b.WriteString(s.Up(i + 1))
	}
	return b.String()
}

// Roles returns the statements that create the roles of producers, relays, consumers and operators and grant them what they need.
func (s Script) Roles() string {
	return strings.ReplaceAll(s.cfg.in(read("roles")), "@name@", s.cfg.Schema)
}

// prologue makes room for the versions; running it again changes nothing.
func (s Script) prologue() string {
	return s.cfg.in(`CREATE SCHEMA IF NOT EXISTS @schema@;
CREATE TABLE IF NOT EXISTS @schema@.migrations (
  version    integer     PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
`)
}

func (s Script) render(version int, direction string) string {
	return s.layout.in(s.cfg.in(read(migrations[version-1] + "." + direction)))
}

func read(name string) string {
	text, err := migrationFiles.ReadFile("migration/" + name + ".sql")
	if err != nil {
		panic(err) // the files are embedded: only a typo in this package leads here
	}
	return string(text)
}
