package postgres_test

import (
	"testing"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/storetest"
)

func TestIdempotencyAdmin(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		db := must(postgres.Open(pool, pgtest.Schema(t, pool, postgres.Layout{})))(t)
		storetest.RunKeys(t, db.IdempotencyKeys(), db.IdempotencyAdmin())
	})
}
