package catalog

import (
	"context"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// readPostgres asks PostgreSQL. A table without a schema is found as the connection would find it.
func (t *Table) readPostgres(ctx context.Context, db sqltext.Querier) error {
	args := []any{t.Dialect.QuoteTable(t.Name)}
	err := each(ctx, db, `SELECT a.attname, lower(format_type(a.atttypid, a.atttypmod)), NOT a.attnotnull,
		  coalesce(pg_get_expr(d.adbin, d.adrelid), ''), a.attidentity <> '', a.attgenerated <> ''
		FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, args,
		func(scan func(...any) error) error {
			var c Column
			if err := scan(&c.Name, &c.Type, &c.Nullable, &c.Default, &c.Counts, &c.Generated); err != nil {
				return err
			}
			c.Counts = c.Counts || strings.HasPrefix(c.Default, "nextval(")
			t.Columns = append(t.Columns, c)
			return nil
		})
	if err != nil || len(t.Columns) == 0 {
		return err
	}
	err = each(ctx, db, `SELECT a.attname, e.enumlabel FROM pg_attribute a JOIN pg_enum e ON e.enumtypid = a.atttypid
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum, e.enumsortorder`, args,
		func(scan func(...any) error) error {
			var column, word string
			if err := scan(&column, &word); err != nil {
				return err
			}
			c := t.Column(column)
			c.Type, c.Allowed = "enum", append(c.Allowed, word)
			return nil
		})
	if err != nil {
		return err
	}
	err = each(ctx, db, `SELECT c.relname, coalesce(a.attname, ''), x.indisunique, x.indisprimary, coalesce(pg_get_expr(x.indpred, x.indrelid), '')
		FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid CROSS JOIN generate_series(1, x.indnkeyatts) k
		LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[k - 1] AND a.attnum > 0
		WHERE x.indrelid = to_regclass($1) AND x.indisvalid ORDER BY c.relname, k`, args, func(scan func(...any) error) error {
		var index, column, where string
		var unique, primary bool
		if err := scan(&index, &column, &unique, &primary, &where); err != nil {
			return err
		}
		if primary {
			t.PrimaryKey = append(t.PrimaryKey, column)
		}
		t.addIndex(index, column, where, unique)
		return nil
	})
	if err != nil {
		return err
	}
	err = db.QueryRowContext(ctx, `SELECT greatest(reltuples, 0)::bigint, relkind = 'p' FROM pg_class WHERE oid = to_regclass($1)`, args...).
		Scan(&t.Rows, &t.Partitioned)
	if err != nil {
		return err
	}
	return each(ctx, db, `SELECT a.attname, pg_get_constraintdef(c.oid)
		FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
		WHERE c.conrelid = to_regclass($1) AND c.contype = 'c' AND array_length(c.conkey, 1) = 1`, args, func(scan func(...any) error) error {
		var column, definition string
		if err := scan(&column, &definition); err != nil {
			return err
		}
		if strings.Contains(definition, "= ANY (") {
			t.allow(column, definition)
		}
		return nil
	})
}
