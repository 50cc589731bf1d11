package postgres_test

import (
	"testing"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/storetest"
)

func TestIdempotencyDesk(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		store, err := postgres.NewIdempotency(pool, cfg)
		if err != nil {
			t.Fatal(err)
		}
		operator, err := postgres.NewIdempotencyDesk(pool, cfg)
		if err != nil {
			t.Fatal(err)
		}
		storetest.RunKeys(t, store, operator)
	})
}
