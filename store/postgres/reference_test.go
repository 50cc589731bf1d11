package postgres_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/internal/docpage"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

var update = flag.Bool("update", false, "write docs/reference/tables.md")

// TestReference generates the reference of the tables from the catalogue of a server.
func TestReference(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c := catalogue{t, pool, pgtest.Schema(t, pool, postgres.Layout{}).Schema}
	c.roles()
	page := c.tables() + c.functions() + c.grants()
	page = strings.NewReplacer(c.schema, "postrider", "timestamp with time zone", "timestamptz").Replace(page)
	docpage.Check(t, *update, "../../docs/reference/tables.md", "TestReference, in store/postgres", page)
	docpage.Check(t, *update, "../../docs/producing/any-language.md", "TestReference, in store/postgres", c.fields())
}

// fields lists the columns of the log that producers set.
func (c *catalogue) fields() string {
	rows := "| column | type | meaning |\n|---|---|---|\n"
	for _, row := range c.rows(`SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute
		WHERE attrelid = format('%I.messages', $1::text)::regclass AND attnum > 0 AND has_column_privilege(format('%I_producer', $1::text), attrelid, attnum, 'INSERT')
		ORDER BY attname <> 'type', attname NOT LIKE 'aggregate%', attname <> 'payload', attnum`) {
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", row[0], row[1], columnWords["messages"][row[0]])
	}
	return strings.ReplaceAll(rows, "timestamp with time zone", "timestamptz")
}

// catalogue asks a server what a schema holds.
type catalogue struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema string
}

// rows returns the result of a query, all of it as text. $1 is the schema.
func (c *catalogue) rows(sql string) (all [][]string) {
	c.t.Helper()
	rows, err := c.pool.Query(c.t.Context(), sql, c.schema)
	if err != nil {
		c.t.Fatal(err)
	}
	all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
		values, err := row.Values()
		texts := make([]string, len(values))
		for i, value := range values {
			if value != nil {
				texts[i] = fmt.Sprint(value)
			}
		}
		return texts, err
	})
	if err != nil || len(all) == 0 {
		c.t.Fatal("the catalogue says nothing: ", err)
	}
	return all
}

// roles creates the roles until the test ends.
func (c *catalogue) roles() {
	c.t.Helper()
	db := must(postgres.Open(c.pool, postgres.Config{Schema: c.schema}))(c.t)
	migrator := must(db.Migrator(postgres.Layout{}))(c.t)
	if err := migrator.Roles(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	pgtest.DropRoles(c.t, c.pool, c.schema)
}

var roleNames = []string{"producer", "consumer", "relay", "operator"}

// tables lists all of them, and the columns of those that users meet.
func (c *catalogue) tables() string {
	var b strings.Builder
	known := make(map[string]bool)
	var open, own string
	for _, row := range c.rows(`SELECT relname::text, CASE relkind WHEN 'v' THEN 'view' ELSE 'table' END FROM pg_class
		WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition ORDER BY relname COLLATE "C"`) {
		name, kind := row[0], row[1]
		known[name] = true
		if tableWords[name] == "" {
			c.t.Errorf("nothing is said about %s", name)
		}
		if columnWords[name] != nil {
			open += fmt.Sprintf("| [`%s`](#%s) | %s | %s |\n", name, name, kind, tableWords[name])
		} else {
			own += fmt.Sprintf("| `%s` | %s | %s |\n", name, kind, tableWords[name])
		}
	}
	for name := range tableWords {
		if !known[name] {
			c.t.Errorf("there is no %s any more", name)
		}
	}
	const head = "| name | kind | what it is for |\n|---|---|---|\n"
	fmt.Fprintf(&b, "## Tables to read and write\n\n%s%s", head, open)
	columns := c.rows(`SELECT r.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
		coalesce(pg_get_expr(d.adbin, d.adrelid), CASE a.attidentity WHEN 'a' THEN 'identity' END)
		FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
		WHERE r.relnamespace = $1::regnamespace AND r.relkind IN ('r', 'p', 'v') AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY r.relname COLLATE "C", a.attnum`)
	table := ""
	for _, row := range columns {
		words := columnWords[row[0]]
		if words == nil {
			continue
		}
		if table != row[0] {
			table = row[0]
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| column | type | default | meaning |\n|---|---|---|---|\n", table, tableWords[table])
		}
		if words[row[1]] == "" {
			c.t.Errorf("nothing is said about %s.%s", row[0], row[1])
		}
		preset := row[4]
		if preset != "" {
			preset = "`" + preset + "`"
		} else if row[3] == "true" {
			preset = "not null"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", row[1], row[2], preset, words[row[1]])
	}
	fmt.Fprintf(&b, "\n## The store's own tables\n\nGood to look at, and subject to change without notice.\n\n%s%s", head, own)
	return b.String()
}

// functions lists those that users call, with their parameters.
func (c *catalogue) functions() string {
	var b strings.Builder
	b.WriteString("\n## Functions to call\n\nParameters with a default may be left out, and all may be given by name: `dedup_key => 'payment:7'`.\n")
	found := make(map[string]bool)
	for _, row := range c.rows(`SELECT proname::text, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc
		WHERE pronamespace = $1::regnamespace ORDER BY proname COLLATE "C", pronargs, 2`) {
		name, arguments, result := row[0], row[1], row[2]
		if functionWords[name] == "" {
			continue
		}
		found[name] = true
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", name, functionWords[name])
		if arguments != "" {
			b.WriteString("\n| parameter | type | default |\n|---|---|---|\n")
			for argument := range strings.SplitSeq(arguments, ", ") {
				argument, preset, _ := strings.Cut(argument, " DEFAULT ")
				parameter, kind, _ := strings.Cut(argument, " ")
				preset, _, _ = strings.Cut(preset, "::")
				if preset != "" {
					preset = "`" + preset + "`"
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", parameter, kind, preset)
			}
		}
		fmt.Fprintf(&b, "\nReturns: %s\n", result)
	}
	if len(found) != len(functionWords) {
		c.t.Errorf("of %d functions there are %d", len(functionWords), len(found))
	}
	return b.String()
}

// grants lists what each role may do.
func (c *catalogue) grants() string {
	var b strings.Builder
	b.WriteString("\n## Roles\n\n`postrider migrate up --roles` creates them; grant them to the users that your programs log in as. " +
		"What stands here is all that they may do beside\nwhat everybody may; `_N` is each partition.\n")
	for _, role := range roleNames {
		name := c.schema + "_" + role
		fmt.Fprintf(&b, "\n### %s\n\n| may | on |\n|---|---|\n", name)
		grants := c.rows(`
			SELECT DISTINCT g.privilege_type, CASE WHEN r.relkind = 'S' THEN 'sequence ' ELSE '' END ||
			    CASE WHEN r.relispartition THEN regexp_replace(r.relname, '\d+$', 'N') ELSE r.relname END,
			  coalesce((SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) FROM pg_attribute a CROSS JOIN LATERAL aclexplode(a.attacl) x
			    WHERE a.attrelid = r.oid AND x.grantee = '` + name + `'::regrole AND x.privilege_type = g.privilege_type), '')
			FROM pg_class r CROSS JOIN LATERAL (
			  SELECT x.privilege_type FROM aclexplode(r.relacl) x WHERE x.grantee = '` + name + `'::regrole
			  UNION
			  SELECT x.privilege_type FROM pg_attribute a CROSS JOIN LATERAL aclexplode(a.attacl) x
			  WHERE a.attrelid = r.oid AND x.grantee = '` + name + `'::regrole) g
			WHERE r.relnamespace = $1::regnamespace
			UNION ALL
			SELECT 'EXECUTE', p.proname || '()', '' FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) x
			WHERE p.pronamespace = $1::regnamespace AND x.grantee = '` + name + `'::regrole
			ORDER BY 1, 2`)
		on := make(map[string][]string)
		var order []string
		for _, g := range grants {
			if !slices.Contains(order, g[0]) {
				order = append(order, g[0])
			}
			what := "`" + g[1] + "`"
			if g[2] != "" {
				what += " (" + g[2] + ")"
			}
			on[g[0]] = append(on[g[0]], what)
		}
		for _, may := range order {
			fmt.Fprintf(&b, "| %s | %s |\n", may, strings.Join(on[may], ", "))
		}
	}
	return b.String()
}
