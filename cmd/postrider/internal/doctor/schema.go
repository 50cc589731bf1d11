package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/postrider/postrider/store/postgres"
)

// schemaChecks examine what the migrations have created.
var schemaChecks = []check{
	{"functions", askFunctions},
	{"identity", askIdentity},
	{"roles", askRoles},
	{"public", askPublic},
	{"definitions", askDefinitions},
	{"plans", askPlans},
	{"autovacuum", askAutovacuum},
}

func askSchema(ctx context.Context, p *target) ([]Finding, error) {
	missing := Finding{Severity: Problem, Finding: fmt.Sprintf("the schema %q does not exist", p.Schema),
		Why: "Messages can be neither enqueued nor delivered.", Fix: p.command("migrate up")}
	state, err := postgres.ReadState(ctx, p.tx, postgres.Config{Schema: p.Schema})
	if err != nil {
		return nil, err
	}
	version, newest := state.Version(), postgres.SchemaVersion()
	switch {
	case version == 0:
	case version < newest:
		missing.Finding = fmt.Sprintf("the schema %q has version %d, this program needs %d", p.Schema, version, newest)
		missing.Why = "Relays of this version refuse to start."
	case state.Needs > newest:
		missing.Finding = fmt.Sprintf("the schema %q has version %d, which is for programs that know version %d; this one knows %d", p.Schema, version, state.Needs, newest)
		missing.Why = "Relays of this version refuse to start."
		missing.Fix = "use a newer program: postrider version"
	default:
		return nil, nil
	}
	return []Finding{missing}, nil
}

// askFunctions checks that the functions are those of this program.
func askFunctions(ctx context.Context, p *target) ([]Finding, error) {
	state, err := postgres.ReadState(ctx, p.tx, postgres.Config{Schema: p.Schema})
	if err != nil || state.Current() {
		return nil, err
	}
	return []Finding{{Severity: Warning, Finding: "the functions are not those of this program",
		Why: "Fixes in newer functions are missing here, and new features of this program may need functions that do not exist.", Fix: p.command("migrate up")}}, nil
}

func askIdentity(ctx context.Context, p *target) ([]Finding, error) {
	home, err := value[bool](ctx, p, "SELECT @schema@.at_home()")
	if err != nil || home {
		return nil, err
	}
	return []Finding{{Severity: Problem, Finding: "the ledger was written in another database: a restored dump, or a clone",
		Why: "Relays deliver nothing: a copy must not send what the original sends.",
		Fix: "if the original is gone: " + p.command("rebase")}}, nil
}

// askDefinitions checks properties of tables and sequences that the correctness of checkpoints
// relies on, and that an ALTER can change.
func askDefinitions(ctx context.Context, p *target) ([]Finding, error) {
	type flaw struct{ What, Why, Fix string }
	flaws, err := rows[flaw](ctx, p, `
		SELECT 'the sequence message_seq has CACHE ' || s.seqcache, 'Numbers are then not drawn in order: messages can be lost.',
		       'ALTER SEQUENCE @schema@.message_seq CACHE 1'
		FROM pg_sequence s WHERE s.seqrelid = to_regclass('@schema@.message_seq') AND s.seqcache <> 1
		UNION ALL
		SELECT 'the column xid stands behind seq in messages', 'The cursor relies on the order in which a row gets these: messages can be lost.',
		       'create a new log: postrider migrate up, in another schema'
		FROM pg_attribute x JOIN pg_attribute s USING (attrelid)
		WHERE x.attrelid = to_regclass('@schema@.messages') AND x.attname = 'xid' AND s.attname = 'seq' AND x.attnum > s.attnum
		UNION ALL
		SELECT 'the table ' || c.relname || ' is unlogged', 'A crash of the server empties it.',
		       'ALTER TABLE ' || c.oid::regclass || ' SET LOGGED'
		FROM pg_class c WHERE c.relnamespace = to_regnamespace('@schema@') AND c.relkind = 'r'
		  AND c.relpersistence = 'u' AND c.relname <> 'generation'
		UNION ALL
		SELECT 'the table generation is not unlogged', 'Relays do not notice a crash of the server, and can miss messages after it.',
		       'ALTER TABLE ' || c.oid::regclass || ' SET UNLOGGED'
		FROM pg_class c WHERE c.oid = to_regclass('@schema@.generation') AND c.relpersistence <> 'u'`)
	var found []Finding
	for _, f := range flaws {
		found = append(found, Finding{Severity: Problem, Finding: f.What, Why: f.Why, Fix: f.Fix})
	}
	return found, err
}

// planSettings are the settings of functions without which the planner may read whole tables.
var planSettings = map[string]string{
	"read_log": "enable_seqscan=off enable_bitmapscan=off enable_sort=off jit=off " +
		"plan_cache_mode=force_generic_plan",
	"balance":     "enable_seqscan=off enable_bitmapscan=off jit=off",
	"slot_passed": "enable_seqscan=off enable_bitmapscan=off jit=off",
	"reclaim":     "enable_seqscan=off lock_timeout=20ms",
	"sweep":       "enable_seqscan=off enable_bitmapscan=off jit=off",
}

func askPlans(ctx context.Context, p *target) ([]Finding, error) {
	type function struct {
		Name, Signature string
		Stable          bool
		Settings        []string
	}
	functions, err := rows[function](ctx, p, `SELECT proname::text, oid::regprocedure::text, provolatile = 's', coalesce(proconfig, '{}')
		FROM pg_proc WHERE pronamespace = to_regnamespace('@schema@') AND prokind = 'f' ORDER BY 1`)
	var found []Finding
	for _, f := range functions {
		have := " " + strings.Join(f.Settings, " ") + " "
		var missing []string
		for want := range strings.FieldsSeq(planSettings[f.Name]) {
			if !strings.Contains(have, " "+want+" ") {
				missing = append(missing, "SET "+want)
			}
		}
		if len(missing) > 0 {
			found = append(found, Finding{Severity: Warning,
				Finding: fmt.Sprintf("the function %s has lost settings: %s", f.Name, strings.Join(missing, ", ")),
				Why:     "The planner may then read whole tables instead of a few rows by their index.",
				Fix:     "ALTER FUNCTION " + f.Signature + " " + strings.Join(missing, " ")})
		}
		if f.Name == "read_log" && !f.Stable {
			found = append(found, Finding{Severity: Problem, Finding: "the function read_log is not STABLE",
				Why: "Its statements then see different snapshots: messages can be lost.", Fix: "ALTER FUNCTION " + f.Signature + " STABLE"})
		}
	}
	return found, err
}

func askAutovacuum(ctx context.Context, p *target) ([]Finding, error) {
	var found []Finding
	for _, name := range []string{"autovacuum", "track_counts"} {
		on, err := value[string](ctx, p, "SELECT current_setting($1)", name)
		if err != nil {
			return nil, err
		}
		if on == "off" {
			found = append(found, Finding{Severity: Problem, Finding: name + " is off",
				Why: "Dead rows are not cleaned up: every table grows and slows down, until the server runs out of transaction IDs.",
				Fix: "ALTER SYSTEM SET " + name + " = on; SELECT pg_reload_conf()"})
		}
	}
	type table struct{ Name, What, Fix string }
	tables, err := rows[table](ctx, p, `
		SELECT c.oid::regclass::text, 'autovacuum is off for it', 'RESET (autovacuum_enabled, toast.autovacuum_enabled)'
		FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
		WHERE c.relnamespace = to_regnamespace('@schema@')
		  AND EXISTS (SELECT FROM pg_options_to_table(array_cat(c.reloptions, t.reloptions)) o
		              WHERE o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean)
		UNION ALL
		SELECT c.oid::regclass::text, 'vacuum reads it again whenever it grows',
		       'SET (autovacuum_vacuum_insert_threshold = -1, toast.autovacuum_vacuum_insert_threshold = -1)'
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = to_regclass('@schema@.messages')
		  AND NOT coalesce(c.reloptions, '{}') @> '{autovacuum_vacuum_insert_threshold=-1}'
		ORDER BY 1, 2`)
	for _, t := range tables {
		found = append(found, Finding{Severity: Warning, Finding: "the storage parameters of " + t.Name + " were changed: " + t.What,
			Why: "Slots are emptied by TRUNCATE and need no vacuum; the other tables depend on it.", Fix: "ALTER TABLE " + t.Name + " " + t.Fix})
	}
	return found, err
}
