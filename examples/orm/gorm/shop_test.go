package gorm

import (
	"slices"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/postrider/postrider/examples/orm/internal/ormtest"
)

// each runs f on every database, with and without prepared statements, which change the type of the
// transaction.
func each(t *testing.T, f func(t *testing.T, db *ormtest.Database, shop *Shop)) {
	ormtest.Each(t, func(t *testing.T, db *ormtest.Database) {
		for name, prepare := range map[string]bool{"plain": false, "prepared": true} {
			t.Run(name, func(t *testing.T) {
				opened, err := gorm.Open(dialector(db), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
				if err != nil {
					t.Fatal(err)
				}
				f(t, db, &Shop{DB: opened, Outbox: ormtest.Refusing(db.Outbox)})
			})
		}
	})
}

func dialector(db *ormtest.Database) gorm.Dialector {
	if db.Dialect == ormtest.MySQL {
		return mysql.New(mysql.Config{Conn: db.DB})
	}
	return postgres.New(postgres.Config{Conn: db.DB})
}

func TestPlace(t *testing.T) {
	each(t, func(t *testing.T, db *ormtest.Database, shop *Shop) {
		ormtest.Exercise(t, db, shop.Place)
	})
}

func TestPlaceEach(t *testing.T) {
	each(t, func(t *testing.T, db *ormtest.Database, shop *Shop) {
		refused, err := shop.PlaceEach(t.Context(), "saddle", ormtest.Refused, "stirrup")
		if err != nil || !slices.Equal(refused, []string{ormtest.Refused}) {
			t.Errorf("%q, %v", refused, err)
		}
		db.Expect(t, "saddle", "stirrup")
	})
}
