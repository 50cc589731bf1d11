package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

const matrixFile = "testdata/rights.txt"

// TestRoleMatrix runs every statement on every object of the schema as every role, and as a user
// without any, and compares which were allowed with testdata/rights.txt. The objects come from the
// catalogue, so a new table or function is in the matrix at once, and the test fails until the file
// says who may use it.
func TestRoleMatrix(t *testing.T) {
	t.Parallel()
	wanted, err := os.ReadFile(matrixFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	pgtest.Each(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		c := catalogue{t, pool, pgtest.Schema(t, pool, postgres.Layout{}).Schema}
		c.roles()
		found := c.matrix()
		if *update {
			if err := os.WriteFile(matrixFile, []byte(found), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		was, is := strings.Split(string(wanted), "\n"), strings.Split(found, "\n")
		for _, line := range is {
			if !slices.Contains(was, line) {
				t.Errorf("found:   %s", line)
			}
		}
		for _, line := range was {
			if !slices.Contains(is, line) {
				t.Errorf("decided: %s", line)
			}
		}
	})
}

// TestRoleMatrixWithoutPublic verifies that every role has the same rights where default privileges
// take EXECUTE from PUBLIC, and that other users have fewer.
func TestRoleMatrixWithoutPublic(t *testing.T) {
	t.Parallel()
	wanted, err := os.ReadFile(matrixFile)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Each(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, pgtest.Database(t, dsn))
		if _, err := pool.Exec(t.Context(), "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"); err != nil {
			t.Fatal(err)
		}
		c := catalogue{t, pool, pgtest.Schema(t, pool, postgres.Layout{}).Schema}
		c.roles()
		was, is := strings.Split(string(wanted), "\n"), strings.Split(c.matrix(), "\n")
		for i := range max(len(was), len(is)) {
			if i >= len(was) || i >= len(is) || strings.ReplaceAll(was[i], " stranger", "") != is[i] {
				t.Fatalf("line %d of %s differs: %q", i+1, matrixFile, is[min(i, len(is)-1)])
			}
		}
	})
}

// attempt is one statement on one object. In the text, @ is the schema.
type attempt struct{ name, sql string }

// matrix has a line for each statement: its name, and the roles that may run it.
func (c *catalogue) matrix() string {
	c.t.Helper()
	conn, err := c.pool.Acquire(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(c.t.Context(), "CREATE ROLE "+c.schema+"_stranger"); err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		if _, err := conn.Exec(c.t.Context(), "DROP ROLE "+c.schema+"_stranger"); err != nil {
			c.t.Error(err)
		}
	}()
	var b strings.Builder
	b.WriteString("# Who may run what. Written by: go test -run TestRoleMatrix -update\n")
	for _, a := range c.attempts() {
		var may []string
		for _, role := range append(slices.Clone(roleNames), "stranger") {
			if c.allowed(conn.Conn(), role, a.sql) {
				may = append(may, role)
			}
		}
		if len(may) == 0 {
			may = []string{"-"}
		}
		fmt.Fprintf(&b, "%s: %s\n", a.name, strings.Join(may, " "))
	}
	return b.String()
}

// attempts returns all statements of the matrix.
func (c *catalogue) attempts() (all []attempt) {
	for _, row := range c.rows(`SELECT c.relname::text, c.relkind::text, (SELECT attname::text FROM pg_attribute a
			WHERE a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum LIMIT 1), pg_relation_is_updatable(c.oid, false)
		FROM pg_class c WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p', 'v', 'S') ORDER BY relname COLLATE "C"`) {
		name, kind, column := row[0], row[1], pgx.Identifier{row[2]}.Sanitize()
		object := "@." + pgx.Identifier{name}.Sanitize()
		if kind == "S" {
			all = append(all, attempt{"nextval " + name, fmt.Sprintf("SELECT nextval('%s')", object)},
				attempt{"setval " + name, fmt.Sprintf("SELECT setval('%s', 1)", object)},
				attempt{"select " + name, "SELECT last_value FROM " + object})
			continue
		}
		all = append(all, attempt{"select " + name, "SELECT * FROM " + object + " LIMIT 0"})
		if kind == "v" && row[3] == "0" {
			continue
		}
		all = append(all, attempt{"insert " + name, "INSERT INTO " + object + " DEFAULT VALUES"},
			attempt{"update " + name, fmt.Sprintf("UPDATE %s SET %s = DEFAULT WHERE false", object, column)},
			attempt{"delete " + name, "DELETE FROM " + object + " WHERE false"})
		if kind != "v" {
			all = append(all, attempt{"truncate " + name, "TRUNCATE " + object},
				attempt{"lock " + name, "LOCK TABLE " + object + " IN ACCESS EXCLUSIVE MODE"})
		}
	}
	for _, row := range c.rows(`SELECT p.proname::text, pg_get_function_identity_arguments(p.oid),
			coalesce((SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)), ''),
			p.prokind::text
		FROM pg_proc p WHERE pronamespace = $1::regnamespace AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
		ORDER BY proname COLLATE "C", pg_get_function_identity_arguments(p.oid) COLLATE "C"`) {
		call := "SELECT @." + row[0] + "(" + row[2] + ")"
		if row[3] == "p" {
			call = "CALL @." + row[0] + "(" + row[2] + ")"
		}
		all = append(all, attempt{strings.ReplaceAll("call "+row[0]+"("+row[1]+")", c.schema+".", ""), call})
	}
	return append(all, attempt{"create table", "CREATE TABLE @.x ()"},
		attempt{"create function", "CREATE FUNCTION @.x() RETURNS integer LANGUAGE sql AS 'SELECT 1'"})
}

// allowed reports whether a role has the right. Any other error of the statement means that it has.
func (c *catalogue) allowed(conn *pgx.Conn, role, sql string) bool {
	c.t.Helper()
	ctx := c.t.Context()
	tx, err := conn.Begin(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	// Without a generation, no function refuses the caller's positions before it checks the
	// caller's rights.
	begin := fmt.Sprintf("DELETE FROM %s.generation; SET LOCAL ROLE %[1]s_%s", c.schema, role)
	if _, err := tx.Exec(ctx, begin, pgx.QueryExecModeSimpleProtocol); err != nil {
		c.t.Fatal(err)
	}
	_, err = tx.Exec(ctx, strings.ReplaceAll(sql, "@.", c.schema+"."), pgx.QueryExecModeSimpleProtocol)
	return sqlState(err) != "42501" // insufficient_privilege
}

// TestFunctionsArePinned verifies that the caller's search path cannot redirect a function that
// runs with its owner's rights, and that PUBLIC may not call one.
func TestFunctionsArePinned(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		c := catalogue{t, pool, pgtest.Schema(t, pool, postgres.Layout{}).Schema}
		for _, row := range c.rows(`SELECT proname::text, coalesce(array_to_string(proconfig, ' '), ''),
				has_function_privilege('public', oid, 'EXECUTE')
			FROM pg_proc WHERE pronamespace = $1::regnamespace AND prosecdef AND prorettype <> 'trigger'::regtype`) {
			if !strings.Contains(row[1], "search_path=") {
				t.Errorf("%s runs with its owner's rights and the caller's search path", row[0])
			}
			if row[2] == "true" {
				t.Errorf("everybody may call %s, which runs with its owner's rights", row[0])
			}
		}
	})
}
