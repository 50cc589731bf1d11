package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/idempotency"
)

// keyAdmin is the admin API for idempotency keys. It is safe for concurrent use.
type keyAdmin struct {
	pool *pgxpool.Pool
	cfg  Config
}

var _ idempotency.Admin = (*keyAdmin)(nil)

// List implements [idempotency.Admin]. It leaves out expired keys.
func (d *keyAdmin) List(ctx context.Context, filter idempotency.Filter, after *idempotency.Kept, limit int) ([]idempotency.Kept, error) {
	var w where
	w.add("i.expires > clock_timestamp()")
	for _, c := range []struct{ column, value string }{
		{"tenant", filter.Tenant}, {"principal", filter.Principal}, {"route", filter.Route}, {"key", filter.Key},
	} {
		if c.value != "" {
			w.add("i."+c.column+" = %s", c.value)
		}
	}
	if filter.Open {
		w.add("NOT i.done")
	}
	if after != nil {
		w.add("i.expires <= %s", after.Expires)
		w.add("(i.expires < %s OR (i.tenant, i.principal, i.route, i.key) > (%s, %s, %s, %s))",
			after.Expires, after.Tenant, after.Principal, after.Route, after.Key)
	}
	rows, err := d.pool.Query(ctx, d.cfg.in(`SELECT i.tenant, i.principal, i.route, i.key, i.done, i.bytes, i.leased, i.expires
		FROM @schema@.idempotency_kept i`+w.String()+" ORDER BY i.expires DESC, i.tenant, i.principal, i.route, i.key LIMIT "+w.arg(limit)),
		append([]any{pgx.QueryExecModeExec}, w.args...)...)
	if err != nil {
		return nil, fmt.Errorf("postgres: idempotency keys: %w", explain(err))
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (idempotency.Kept, error) {
		var k idempotency.Kept
		err := row.Scan(&k.Tenant, &k.Principal, &k.Route, &k.Key, &k.Done, &k.Bytes, &k.Leased, &k.Expires)
		k.Leased, k.Expires = k.Leased.UTC(), k.Expires.UTC()
		if k.Done {
			k.Leased = time.Time{}
		}
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: idempotency keys: %w", explain(err))
	}
	return keys, nil
}
