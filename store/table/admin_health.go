package table

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Health implements [admin.Gauges]. What the user may not see is left out.
func (d *Admin) Health(ctx context.Context) (*admin.Health, error) {
	v := &admin.Health{Tables: []admin.TableSize{}, Slots: []admin.Slot{}}
	var now sql.NullInt64
	version := "concat('PostgreSQL ', split_part(current_setting('server_version'), ' ', 1))"
	if d.cfg.Dialect == sqltext.MySQL {
		version = "version()"
	}
	err := d.cfg.stmt("SELECT ", d.cfg.Dialect.Micros(d.cfg.Dialect.Now()), ", ", version, ", coalesce(", d.cfg.Dialect.Within(d.cfg.Schema),
		", ''), (SELECT coalesce(max(version), 0) FROM {migrations})").Row(ctx, d.db).Scan(&now, &v.Server, &v.Schema, &v.Version)
	if err != nil {
		return nil, d.failed("health", err)
	}
	if v.At = sqltext.Moment(now); d.cfg.Dialect == sqltext.MySQL && !strings.Contains(v.Server, "MariaDB") {
		v.Server = "MySQL " + v.Server
	}
	if err := d.tableSizes(ctx, v); err != nil {
		return nil, d.failed("health", err)
	}
	for _, figure := range figures[d.cfg.Dialect] {
		var n sql.NullFloat64
		if d.db.QueryRowContext(ctx, figure.query).Scan(&n) == nil { // what needs a right that the user lacks is not worth an error
			figure.set(v, n.Float64)
		}
	}
	return v, ctx.Err()
}

// figure is a number that one query returns.
type figure struct {
	query string
	set   func(v *admin.Health, n float64)
}

func setSize(v *admin.Health, n float64) { v.Size = int64(n) }
func setOldest(v *admin.Health, n float64) {
	v.OldestTransaction = max(0, time.Duration(n*float64(time.Second)))
}
func setConnections(v *admin.Health, n float64) { v.Connections = int(n) }
func setMost(v *admin.Health, n float64)        { v.MaxConnections = int(n) }

var figures = map[sqltext.Dialect][]figure{
	sqltext.MySQL: {
		{"SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema = database()", setSize},
		{"SELECT max(timestampdiff(SECOND, trx_started, now())) FROM information_schema.innodb_trx", setOldest},
		{"SELECT count(*) FROM information_schema.processlist", setConnections},
		{"SELECT @@max_connections", setMost},
	},
	sqltext.PostgreSQL: {
		{"SELECT pg_database_size(current_database())", setSize},
		{`SELECT date_part('epoch', clock_timestamp() - min(xact_start)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`, setOldest},
		{"SELECT sum(numbackends) FROM pg_stat_database", setConnections},
		{"SELECT CAST(current_setting('max_connections') AS integer)", setMost},
	},
}

// tableSizes adds our tables, and that of the messages.
func (d *Admin) tableSizes(ctx context.Context, v *admin.Health) error {
	schema, name, ok := strings.Cut(d.cfg.Layout.Table, ".")
	if !ok {
		schema, name = v.Schema, d.cfg.Layout.Table
	}
	s := d.cfg.stmt()
	if d.cfg.Dialect == sqltext.MySQL {
		s.SQL(`SELECT table_name, coalesce(data_length + index_length, 0) AS bytes, coalesce(table_rows, 0), 0, NULL FROM information_schema.tables
			WHERE table_schema = `).Text(v.Schema).SQL(" AND left(table_name, char_length(").Text(d.cfg.Prefix).SQL(")) = ").Text(d.cfg.Prefix).
			SQL(" OR table_schema = ").Text(schema).SQL(" AND table_name = ").Text(name)
	} else {
		s.SQL(`SELECT relname, pg_total_relation_size(relid) AS bytes, n_live_tup, n_dead_tup,
			`, d.cfg.Dialect.Micros("greatest(last_vacuum, last_autovacuum)"), ` FROM pg_stat_user_tables
			WHERE schemaname = `).Text(v.Schema).SQL(" AND starts_with(relname, ").Text(d.cfg.Prefix).
			SQL(") OR schemaname = ").Text(schema).SQL(" AND relname = ").Text(name)
	}
	return s.SQL(" ORDER BY bytes DESC, 1").Each(ctx, d.db, func(scan func(...any) error) error {
		var t admin.TableSize
		var vacuumed sql.NullInt64
		err := scan(&t.Name, &t.Bytes, &t.Rows, &t.DeadRows, &vacuumed)
		t.LastVacuum = sqltext.Moment(vacuumed)
		v.Tables = append(v.Tables, t)
		switch t.Name {
		case d.cfg.Prefix + "dedup":
			v.DedupKeys = t.Rows
		case d.cfg.Prefix + "idempotency":
			v.IdempotencyKeys = t.Rows
		}
		return err
	})
}
