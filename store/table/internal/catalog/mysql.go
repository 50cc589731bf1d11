package catalog

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// readMySQL asks MySQL or MariaDB. Nothing of it depends on the session, besides its database where no other is named.
func (t *Table) readMySQL(ctx context.Context, db sqltext.Querier) error {
	schema, name := t.Split()
	args := []any{name}
	where := " WHERE table_schema = " + sqltext.MySQL.Within(schema) + " AND table_name = ? "
	var mariadb bool
	if err := db.QueryRowContext(ctx, "SELECT version() LIKE '%MariaDB%'").Scan(&mariadb); err != nil {
		return err
	}
	err := each(ctx, db, `SELECT column_name, column_type, is_nullable = 'YES', coalesce(column_default, ''), extra
		FROM information_schema.columns`+where+`ORDER BY ordinal_position`, args, func(scan func(...any) error) error {
		var c Column
		var extra string
		if err := scan(&c.Name, &c.Type, &c.Nullable, &c.Default, &extra); err != nil {
			return err
		}
		lower := strings.ToLower(c.Type)
		if strings.HasPrefix(lower, "enum(") {
			c.Allowed = Literals(c.Type)
			lower = "enum"
		}
		extra = strings.ToUpper(extra)
		c.Type, c.Counts = lower, strings.Contains(extra, "AUTO_INCREMENT")
		c.Touched = strings.Contains(extra, "ON UPDATE")
		c.Generated = strings.Contains(extra, "VIRTUAL GENERATED") || strings.Contains(extra, "STORED GENERATED")
		switch {
		case mariadb && c.Default == "NULL":
			c.Default = ""
		case !mariadb && c.Default != "" && !strings.Contains(extra, "DEFAULT_GENERATED"): // MySQL says it without quotation marks
			c.Default = sqltext.MySQL.Literal(c.Default)
		}
		t.Columns = append(t.Columns, c)
		return nil
	})
	if err != nil || len(t.Columns) == 0 {
		return err
	}
	err = each(ctx, db, `SELECT index_name, coalesce(column_name, ''), non_unique = 0
		FROM information_schema.statistics`+where+`ORDER BY index_name, seq_in_index`, args, func(scan func(...any) error) error {
		var index, column string
		var unique bool
		if err := scan(&index, &column, &unique); err != nil {
			return err
		}
		if index == "PRIMARY" {
			t.PrimaryKey = append(t.PrimaryKey, column)
		}
		t.addIndex(index, column, "", unique)
		return nil
	})
	if err != nil {
		return err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(table_rows, 0) FROM information_schema.tables`+where, args...).Scan(&t.Rows)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return t.readMySQLChecks(ctx, db)
}

// readMySQLChecks reads constraints. MariaDB names them by table, and MySQL by schema.
func (t *Table) readMySQLChecks(ctx context.Context, db sqltext.Querier) error {
	schema, name := t.Split()
	within := sqltext.MySQL.Within(schema)
	clauses, err := list(ctx, db, `SELECT check_clause FROM information_schema.check_constraints
		WHERE constraint_schema = `+within+` AND table_name = ?`, name)
	if number, _ := sqltext.Code(err); number == 1054 { // there is no such column
		clauses, err = list(ctx, db, `SELECT c.check_clause FROM information_schema.check_constraints c
			JOIN information_schema.table_constraints t USING (constraint_schema, constraint_name)
			WHERE t.constraint_schema = `+within+` AND t.table_name = ?`, name)
	}
	for _, clause := range clauses {
		for _, c := range t.Columns {
			quoted := t.Dialect.Quote(c.Name)
			trimmed := strings.TrimLeft(clause, "( ")
			if strings.HasPrefix(trimmed, quoted) && strings.HasPrefix(strings.TrimLeft(strings.ToLower(trimmed[len(quoted):]), ") "), "in (") {
				// MySQL writes the character set before each text, and escapes its quotes.
				t.allow(c.Name, strings.ReplaceAll(clause, `\'`, `'`))
			}
		}
	}
	return err
}
