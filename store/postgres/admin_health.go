package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
)

// Health implements [admin.Gauges]. It leaves out what the user may not see.
func (d *Admin) Health(ctx context.Context) (*admin.Health, error) {
	v := &admin.Health{Schema: d.cfg.Schema, Tables: []admin.TableSize{}, Slots: []admin.Slot{}}
	err := d.look(ctx, func(tx pgx.Tx) error {
		var period float64
		var transaction, snapshot *float64
		err := tx.QueryRow(ctx, d.cfg.in(`SELECT clock_timestamp(), 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1),
			  (SELECT coalesce(max(version), 0) FROM @schema@.migrations),
			  CASE WHEN has_database_privilege(current_database(), 'CONNECT') THEN pg_database_size(current_database()) ELSE 0 END,
			  @schema@.slot_count(),
			  (SELECT count(*) FROM pg_inherits i WHERE i.inhparent = '@schema@.messages'::regclass AND pg_relation_size(i.inhrelid) > 0),
			  date_part('epoch', @schema@.slot_period()), date_part('epoch', o.transaction), date_part('epoch', o.snapshot),
			  (SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database), current_setting('max_connections')::integer
			FROM @schema@.oldest_transactions() o`), pgx.QueryExecModeExec).Scan(
			&v.At, &v.Server, &v.Version, &v.Size, &v.Capacity.Slots, &v.Capacity.Used, &period, &transaction, &snapshot,
			&v.Connections, &v.MaxConnections)
		if err != nil {
			return err
		}
		v.At, v.Capacity.Period = v.At.UTC(), time.Duration(period)*time.Second
		v.OldestTransaction, v.OldestSnapshot = seconds(transaction), seconds(snapshot)
		if err := d.tables(ctx, tx, v); err != nil {
			return err
		}
		return replicationSlots(ctx, tx, v)
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: health: %w", explain(err))
	}
	return v, nil
}

// seconds converts an age. Clock skew does not make it negative.
func seconds(s *float64) time.Duration {
	return max(0, time.Duration(value(s)*float64(time.Second)))
}

// tables adds the tables of the schema.
func (d *Admin) tables(ctx context.Context, tx pgx.Tx, v *admin.Health) error {
	rows, err := tx.Query(ctx, `SELECT c.relname, sum(t.bytes)::bigint, sum(t.rows)::bigint, sum(t.dead)::bigint, max(t.vacuumed)
		FROM (SELECT coalesce(pg_partition_root(s.relid), s.relid) AS root, coalesce(pg_total_relation_size(s.relid), 0) AS bytes,
		             s.n_live_tup AS rows, s.n_dead_tup AS dead, greatest(s.last_vacuum, s.last_autovacuum) AS vacuumed
		      FROM pg_stat_user_tables s WHERE s.schemaname = $1) t
		JOIN pg_class c ON c.oid = t.root GROUP BY c.relname ORDER BY 2 DESC, 1`, pgx.QueryExecModeExec, d.cfg.Schema)
	if err != nil {
		return err
	}
	var t admin.TableSize
	var vacuumed *time.Time
	_, err = pgx.ForEachRow(rows, []any{&t.Name, &t.Bytes, &t.Rows, &t.DeadRows, &vacuumed}, func() error {
		t.LastVacuum = value(vacuumed).UTC()
		v.Tables = append(v.Tables, t)
		switch t.Name {
		case "dedup_keys":
			v.DedupKeys = t.Rows
		case "idempotency_keys":
			v.IdempotencyKeys = t.Rows
		}
		return nil
	})
	return err
}

// replicationSlots adds the replication slots.
func replicationSlots(ctx context.Context, tx pgx.Tx, v *admin.Health) error {
	rows, err := tx.Query(ctx, `SELECT s.slot_name, s.active, coalesce(greatest(pg_wal_lsn_diff(
		  CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, s.restart_lsn), 0), 0)::bigint
		FROM pg_replication_slots s ORDER BY 1`, pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	var s admin.Slot
	_, err = pgx.ForEachRow(rows, []any{&s.Name, &s.Active, &s.Bytes}, func() error {
		v.Slots = append(v.Slots, s)
		return nil
	})
	return err
}
