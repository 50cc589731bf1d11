package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// setting is a setting with which some sessions of this database start.
type setting struct {
	where string // what sets it
	value string
	fix   string
}

// settings returns the values that are set by this name for the database, for roles in it, and by
// the server. The fixes lead to the wanted value.
func (p *target) settings(ctx context.Context, name, wanted string) ([]setting, error) {
	type override struct{ Database, Role, Value string }
	overrides, err := rows[override](ctx, p, `SELECT coalesce(d.datname, ''), coalesce(r.rolname, ''), split_part(c, '=', 2)
		FROM pg_db_role_setting s
		CROSS JOIN unnest(s.setconfig) c
		LEFT JOIN pg_database d ON d.oid = s.setdatabase
		LEFT JOIN pg_roles r ON r.oid = s.setrole
		WHERE split_part(c, '=', 1) = $1 AND (s.setdatabase = 0 OR d.datname = current_database())
		ORDER BY 1, 2`, name)
	if err != nil {
		return nil, err
	}
	var all []setting
	for _, o := range overrides {
		s := setting{value: o.Value}
		database, role := pgx.Identifier{o.Database}.Sanitize(), pgx.Identifier{o.Role}.Sanitize()
		switch {
		case o.Role == "":
			s.where, s.fix = "the database "+o.Database, "ALTER DATABASE "+database+" RESET "+name
		case o.Database == "":
			s.where, s.fix = "the role "+o.Role, "ALTER ROLE "+role+" RESET "+name
		default:
			s.where, s.fix = "the role "+o.Role+" in the database "+o.Database, "ALTER ROLE "+role+" IN DATABASE "+database+" RESET "+name
		}
		all = append(all, s)
	}
	type current struct{ Value, Source string }
	ours, err := rows[current](ctx, p, "SELECT setting, source FROM pg_settings WHERE name = $1", name)
	for _, c := range ours {
		switch {
		case c.Source == "client" || c.Source == "session":
			all = append(all, setting{"the address of this connection", c.Value, "remove " + name + " from the address"})
		case c.Source != "database" && !strings.HasSuffix(c.Source, "user"):
			all = append(all, setting{"the server", c.Value, "ALTER SYSTEM SET " + name + " = " + quote(wanted) + "; SELECT pg_reload_conf()"})
		}
	}
	return all, err
}

func askDurability(ctx context.Context, p *target) ([]Finding, error) {
	var found []Finding
	for _, danger := range []struct{ name, why string }{
		{"fsync", "After a crash of the machine the database is lost or silently corrupted."},
		{"full_page_writes", "A page that was half written in a crash stays damaged."},
		{"synchronous_commit", "A crash loses transactions that applications believe committed, including some whose messages were delivered."},
	} {
		all, err := p.settings(ctx, danger.name, "on")
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if slices.Contains([]string{"off", "false", "no", "0"}, strings.ToLower(s.value)) {
				found = append(found, Finding{Severity: Problem,
					Finding: fmt.Sprintf("%s is off, set by %s", danger.name, s.where), Why: danger.why, Fix: s.fix})
			}
		}
	}
	return found, nil
}

func askIsolation(ctx context.Context, p *target) ([]Finding, error) {
	all, err := p.settings(ctx, "default_transaction_isolation", "read committed")
	var found []Finding
	for _, s := range all {
		if s.value != "read committed" {
			found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("transactions are %q by default, set by %s", s.value, s.where),
				Why: "A relay that connects with it cannot empty delivered slots, so the log grows; producers must expect serialization failures.",
				Fix: s.fix})
		}
	}
	return found, err
}
