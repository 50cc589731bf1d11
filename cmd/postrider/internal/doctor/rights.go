package doctor

import (
	"context"
	"fmt"
	"strings"
)

// askRoles compares the rights of the two roles with those that producers and relays need.
func askRoles(ctx context.Context, p *target) ([]Finding, error) {
	repair := p.command("migrate up --roles")
	producer, relay := p.Schema+"_producer", p.Schema+"_relay"
	there, err := values[string](ctx, p, "SELECT rolname::text FROM pg_roles WHERE rolname IN ($1, $2)", producer, relay)
	if err != nil {
		return nil, err
	}
	if len(there) == 0 {
		return []Finding{{Severity: Info, Finding: fmt.Sprintf("the roles %s and %s do not exist", producer, relay),
			Why: "Applications and relays then need the rights of the owner, who can change and remove messages.", Fix: repair}}, nil
	}
	if len(there) == 1 {
		return []Finding{{Severity: Warning, Finding: fmt.Sprintf("of the roles %s and %s only %s exists", producer, relay, there[0]),
			Why: "Users that should have the other one have too many rights, or too few.", Fix: repair}}, nil
	}
	type lack struct{ Role, Right string }
	lacks, err := rows[lack](ctx, p, `
		SELECT r, 'USAGE on the schema' FROM unnest(ARRAY[$1, $2]) r WHERE NOT has_schema_privilege(r, '@schema@'::regnamespace, 'USAGE')
		UNION ALL
		SELECT $1, 'USAGE on message_seq' WHERE NOT has_sequence_privilege($1, '@schema@.message_seq', 'USAGE')
		UNION ALL
		SELECT $1, 'INSERT of messages.' || attname FROM pg_attribute
		WHERE attrelid = '@schema@.messages'::regclass AND attnum > 0 AND NOT attisdropped
		  AND attname <> ALL ('{xid,seq,created_at,slot,shard}') AND NOT has_column_privilege($1, attrelid, attnum, 'INSERT')
		UNION ALL
		SELECT $2, w.what || ' on ' || c.relname
		FROM (VALUES ('SELECT', '{messages,feeds,checkpoints,members,generation,identity,cursors,deferred}'::text[]),
		             ('INSERT', '{checkpoints,members,generation}')) w(what, tables)
		JOIN pg_class c ON c.relnamespace = '@schema@'::regnamespace AND c.relname = ANY (w.tables)
		WHERE NOT has_table_privilege($2, c.oid, w.what)
		UNION ALL
		SELECT $2, 'EXECUTE on ' || f.proname || '()' FROM pg_proc f
		WHERE f.pronamespace = '@schema@'::regnamespace AND f.proname IN ('open_feed', 'reclaim', 'sweep', 'defer', 'conclude', 'suspect', 'report') AND NOT has_function_privilege($2, f.oid, 'EXECUTE')
		UNION ALL
		SELECT $1, 'EXECUTE on claim_keys' WHERE NOT has_function_privilege($1, '@schema@.claim_keys(text[])', 'EXECUTE')`, producer, relay)
	if err != nil {
		return nil, err
	}
	rights := map[string][]string{}
	for _, l := range lacks {
		rights[l.Role] = append(rights[l.Role], l.Right)
	}
	var found []Finding
	for _, role := range []string{producer, relay} {
		lacking := rights[role]
		if lacking == nil {
			continue
		}
		found = append(found, Finding{Severity: Warning, Finding: fmt.Sprintf("the role %s lacks %s", role, strings.Join(lacking, ", ")),
			Why: "Programs that connect with it fail, now or later.", Fix: repair})
	}
	return found, nil
}

// askPublic finds rights of PUBLIC that only the owner and the roles should have.
func askPublic(ctx context.Context, p *target) ([]Finding, error) {
	type grant struct{ Right, Kind, Object string }
	grants, err := rows[grant](ctx, p, `
		SELECT DISTINCT a.privilege_type, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass::text
		FROM pg_class c
		CROSS JOIN LATERAL (SELECT * FROM aclexplode(c.relacl)
		                    UNION ALL SELECT x.* FROM pg_attribute t, aclexplode(t.attacl) x WHERE t.attrelid = c.oid) a
		WHERE c.relnamespace = to_regnamespace('@schema@') AND a.grantee = 0
		  AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
		UNION ALL
		SELECT a.privilege_type, 'SCHEMA', quote_ident(n.nspname) FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a
		WHERE n.oid = to_regnamespace('@schema@') AND a.grantee = 0 AND a.privilege_type = 'CREATE'
		UNION ALL
		SELECT 'EXECUTE', 'FUNCTION', f.oid::regprocedure::text FROM pg_proc f
		WHERE f.pronamespace = to_regnamespace('@schema@') AND (f.prosecdef AND f.prorettype <> 'trigger'::regtype OR f.proname = 'rebase')
		  AND EXISTS (SELECT FROM aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) a WHERE a.grantee = 0)
		ORDER BY 3, 1`)
	var found []Finding
	for _, g := range grants {
		found = append(found, Finding{Severity: Problem, Finding: fmt.Sprintf("PUBLIC has %s on %s", g.Right, g.Object),
			Why: "Every user of the database can forge, change or remove messages, or block their delivery.",
			Fix: fmt.Sprintf("REVOKE %s ON %s %s FROM PUBLIC", g.Right, g.Kind, g.Object)})
	}
	return found, err
}
