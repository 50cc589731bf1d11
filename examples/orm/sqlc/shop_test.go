package sqlc

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/examples/orm/internal/ormtest"
	"github.com/postrider/postrider/examples/orm/sqlc/mysql"
	"github.com/postrider/postrider/examples/orm/sqlc/pgsql"
	"github.com/postrider/postrider/examples/orm/sqlc/pgxv5"
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
		shop := &PgxShop{Pool: db.Pool, Queries: pgxv5.New(db.Pool), Outbox: ormtest.Refusing[pgx.Tx](db.Pgx.Outbox())}
		ormtest.Exercise(t, db, shop.Place)
	})
}
