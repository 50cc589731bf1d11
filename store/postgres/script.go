package postgres

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed sql
var sqlFiles embed.FS

// functionFiles lists the files in the order in which they must run: some functions need earlier
// ones.
var functionFiles = []string{
	"relay", "enqueue", "retention", "deferred", "operator", "shards", "inbox", "idempotency", "saga", "reconciler", "console",
}

// Script is the schema as SQL text, for a [Migrator] or for another migration tool.
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

// Up returns the statements that take the tables from version-1 to version. They can run in one
// transaction.
func (s Script) Up(version int) string {
	return s.step(version, "") + s.cfg.in(fmt.Sprintf("\nINSERT INTO @schema@.migrations (version, needs) VALUES (%d, %d);\n", version, needs[version-1]))
}

// Down returns the statements that take the tables from version back to version-1. Those of version
// 1 also remove all functions.
func (s Script) Down(version int) string {
	text := s.step(version, ".down") + s.cfg.in(fmt.Sprintf("\nDELETE FROM @schema@.migrations WHERE version = %d;\n", version))
	if version == 1 {
		return s.dropFunctions() + text
	}
	// Without functions_version, the program that knows the version below replaces the functions
	// with its own.
	return text + s.cfg.in("DROP FUNCTION IF EXISTS @schema@.functions_version();\n")
}

// Functions returns the statements that create all functions, or replace them while everything
// runs. The tables must have the newest version.
func (s Script) Functions() string {
	return s.cfg.in(functions() + fmt.Sprintf(`
-- Which functions these are.
CREATE OR REPLACE FUNCTION @schema@.functions_version(OUT version integer, OUT digest text)
  LANGUAGE sql IMMUTABLE
AS $$ SELECT %d, '%s' $$;
`, functionsVersion, functionsDigest()))
}

// All returns the statements that take an empty database to the newest version.
func (s Script) All() string {
	var b strings.Builder
	b.WriteString(s.prologue())
	for i := range needs {
		b.WriteString("\n" + s.Up(i+1))
	}
	b.WriteString("\n" + s.Functions())
	return b.String()
}

// Roles returns the statements that create the roles of producers, relays, consumers and operators
// and grant them the rights they need.
func (s Script) Roles() string {
	return strings.ReplaceAll(s.cfg.in(read("roles.sql")), "@name@", s.cfg.Schema)
}

// prologue creates the table of versions. It is safe to run again.
func (s Script) prologue() string {
	return s.cfg.in(`CREATE SCHEMA IF NOT EXISTS @schema@;
CREATE TABLE IF NOT EXISTS @schema@.migrations (
  version    integer     PRIMARY KEY,
  needs      integer     NOT NULL,  -- the oldest version that a program must know to work with this one
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
`)
}

func (s Script) step(version int, direction string) string {
	return s.layout.in(limits(s.cfg.in(read(fmt.Sprintf("schema/%03d%s.sql", version, direction)))))
}

// functions returns the text of all functions, with @schema@ in place of the schema. It contains
// nothing of the layout, which only the first migration knows.
func functions() string {
	texts := make([]string, len(functionFiles))
	for i, name := range functionFiles {
		texts[i] = limits(read("functions/" + name + ".sql"))
	}
	return strings.Join(texts, "\n")
}

// functionsDigest distinguishes functions that have the same version, as between two releases.
func functionsDigest() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(functions())))[:16] }

var created = regexp.MustCompile(`(?m)^CREATE OR REPLACE FUNCTION @schema@\.(\w+)`)

// dropFunctions returns statements that remove what Functions creates, whatever arguments it had in
// other releases, and nothing else in the schema.
func (s Script) dropFunctions() string {
	names := []string{"functions_version"}
	for _, m := range created.FindAllStringSubmatch(functions(), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return s.cfg.in(fmt.Sprintf(`DO $$
DECLARE
  all_of_them text := (SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p
    WHERE p.pronamespace = '@schema@'::regnamespace AND p.proname IN ('%s'));
BEGIN
  IF all_of_them IS NOT NULL THEN
    EXECUTE 'DROP FUNCTION ' || all_of_them;
  END IF;
END
$$;
`, strings.Join(slices.Compact(names), "', '")))
}

func read(name string) string {
	text, err := sqlFiles.ReadFile("sql/" + name)
	if err != nil {
		panic(err) // the files are embedded, so only a typo in this package causes an error
	}
	return string(text)
}
