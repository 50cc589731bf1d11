package sqlx

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/postrider/postrider/examples/orm/internal/ormtest"
)

// drivers are the names by which sqlx knows the placeholders of a database.
var drivers = map[string]string{ormtest.Postgres: "pgx", ormtest.MySQL: "mysql"}

func TestPlace(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		shop := &Shop{DB: sqlx.NewDb(db.DB, drivers[db.Dialect]), Outbox: ormtest.Refusing(db.Outbox)}
		ormtest.Exercise(t, db, shop.Place)
	})
}
