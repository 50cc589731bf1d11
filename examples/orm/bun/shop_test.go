package bun

import (
	"slices"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"

	"github.com/postrider/postrider/examples/orm/internal/ormtest"
)

func open(db *ormtest.Database) *Shop {
	var dialect schema.Dialect = pgdialect.New()
	if db.Dialect == ormtest.MySQL {
		dialect = mysqldialect.New()
	}
	return &Shop{DB: bun.NewDB(db.DB, dialect), Outbox: ormtest.Refusing(db.Outbox)}
}

func TestPlace(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		ormtest.Exercise(t, db, open(db).Place)
	})
}

func TestPlaceEach(t *testing.T) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		refused, err := open(db).PlaceEach(t.Context(), "saddle", ormtest.Refused, "stirrup")
		if err != nil || !slices.Equal(refused, []string{ormtest.Refused}) {
			t.Errorf("%q, %v", refused, err)
		}
		db.Expect(t, "saddle", "stirrup")
	})
}
