package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

var _ idempotency.Admin = (*keyStore)(nil)

// List implements [idempotency.Admin]. Keys whose retention is over are left out.
func (s *keyStore) List(ctx context.Context, filter idempotency.Filter, after *idempotency.Kept, limit int) ([]idempotency.Kept, error) {
	micros := sqltext.MySQL.Micros
	st := s.cfg.stmt("SELECT tenant, principal, route, request_key, answer IS NOT NULL, coalesce(length(answer), 0), ", micros("leased"), ", ",
		micros("expires"), " FROM {idempotency} WHERE expires > {now} AND token <> ''")
	for _, c := range []struct{ column, value string }{
		{"tenant", filter.Tenant}, {"principal", filter.Principal}, {"route", filter.Route}, {"request_key", filter.Key},
	} {
		if c.value != "" {
			st.SQL(" AND ", c.column, " = ").Word(c.value)
		}
	}
	if filter.Open {
		st.SQL(" AND answer IS NULL")
	}
	if after != nil {
		st.SQL(" AND expires <= ").Time(after.Expires).SQL(" AND (expires < ").Time(after.Expires).
			SQL(" OR (tenant, principal, route, request_key) > (").Word(after.Tenant).SQL(",").Word(after.Principal).SQL(",").
			Word(after.Route).SQL(",").Word(after.Key).SQL("))")
	}
	var keys []idempotency.Kept
	err := st.SQL(" ORDER BY expires DESC, tenant, principal, route, request_key LIMIT ").Number(int64(limit)).
		Each(ctx, s.db, func(scan func(...any) error) error {
			var k idempotency.Kept
			var leased, expires sql.NullInt64
			err := scan(&k.Tenant, &k.Principal, &k.Route, &k.Key, &k.Done, &k.Bytes, &leased, &expires)
			if !k.Done {
				k.Leased = sqltext.Moment(leased)
			}
			k.Expires = sqltext.Moment(expires)
			keys = append(keys, k)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("mysql: idempotency keys: %w", sqltext.Explained(err))
	}
	return keys, nil
}
