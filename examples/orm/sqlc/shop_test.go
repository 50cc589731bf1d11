package sqlc

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/examples/orm/internal/ormtest"
	"github.com/postrider/postrider/examples/orm/sqlc/mysql"
	"github.com/postrider/postrider/examples/orm/sqlc/pgsql"
	"github.com/postrider/postrider/examples/orm/sqlc/pgxv5"
	"github.com/postrider/postrider/store/postgres"
)

func TestPlace(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		place := (&Shop{DB: db.DB, Queries: pgsql.New(db.DB), Outbox: ormtest.Refusing(db.Outbox)}).Place
		if db.Dialect == ormtest.MySQL {
			place = (&MySQLShop{DB: db.DB, Queries: mysql.New(db.DB), Outbox: ormtest.Refusing(db.Outbox)}).Place
		}
		ormtest.Exercise(t, db, place)
	})
}

func TestPlaceWithPgx(t *testing.T) {
	ormtest.EachPostgres(t, func(t *testing.T, db *ormtest.Database) {
		outbox, err := postgres.NewOutbox(postgres.OutboxConfig{})
		if err != nil {
			t.Fatal(err)
		}
		shop := &PgxShop{Pool: db.Pool, Queries: pgxv5.New(db.Pool), Outbox: ormtest.Refusing[pgx.Tx](outbox)}
		ormtest.Exercise(t, db, shop.Place)
	})
}
