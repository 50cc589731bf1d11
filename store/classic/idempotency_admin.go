package classic

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider/idempotency"
)

var _ idempotency.Admin = (*keyStore)(nil)

// List implements [idempotency.Admin]. Keys whose retention is over are left out.
func (s *keyStore) List(ctx context.Context, filter idempotency.Filter, after *idempotency.Kept, limit int) ([]idempotency.Kept, error) {
	micros := s.cfg.Dialect.micros
	st := s.cfg.stmt("SELECT tenant, principal, route, request_key, answer IS NOT NULL, coalesce(length(answer), 0), ", micros("leased"), ", ",
		micros("expires"), " FROM {idempotency} WHERE expires > {now} AND token <> ''")
	for _, c := range []struct{ column, value string }{
		{"tenant", filter.Tenant}, {"principal", filter.Principal}, {"route", filter.Route}, {"request_key", filter.Key},
	} {
		if c.value != "" {
			st.sql(" AND ", c.column, " = ").word(c.value)
		}
	}
	if filter.Open {
		st.sql(" AND answer IS NULL")
	}
	if after != nil {
		st.sql(" AND expires <= ").time(after.Expires).sql(" AND (expires < ").time(after.Expires).
			sql(" OR (tenant, principal, route, request_key) > (").word(after.Tenant).sql(",").word(after.Principal).sql(",").
			word(after.Route).sql(",").word(after.Key).sql("))")
	}
	var keys []idempotency.Kept
	err := st.sql(" ORDER BY expires DESC, tenant, principal, route, request_key LIMIT ").number(int64(limit)).
		each(ctx, s.db, func(scan func(...any) error) error {
			var k idempotency.Kept
			var leased, expires sql.NullInt64
			err := scan(&k.Tenant, &k.Principal, &k.Route, &k.Key, &k.Done, &k.Bytes, &leased, &expires)
			if !k.Done {
				k.Leased = moment(leased)
			}
			k.Expires = moment(expires)
			keys = append(keys, k)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("classic: idempotency keys: %w", explained(err))
	}
	return keys, nil
}
