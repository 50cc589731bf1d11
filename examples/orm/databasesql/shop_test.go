package databasesql

import (
	"testing"

	"github.com/postrider/postrider/examples/orm/internal/ormtest"
)

// inserts has the statement for each database.
var inserts = map[string]string{
	ormtest.Postgres: "INSERT INTO orders (id, item) VALUES ($1, $2)",
	ormtest.MySQL:    "INSERT INTO orders (id, item) VALUES (?, ?)",
}

func TestPlace(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		shop := &Shop{DB: db.DB, Outbox: ormtest.Refusing(db.Outbox), Insert: inserts[db.Dialect]}
		ormtest.Exercise(t, db, shop.Place)
	})
}
