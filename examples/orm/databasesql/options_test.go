package databasesql

import (
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider/examples/orm/internal/ormtest"
)

// TestDriverOptions checks that options of the MySQL driver for parameters and times do not change
// the messages.
func TestDriverOptions(t *testing.T) {
	for name, configure := range map[string]func(*mysql.Config){
		"interpolateParams": func(c *mysql.Config) { c.InterpolateParams = true },
		"parseTime and loc": func(c *mysql.Config) { c.ParseTime, c.Loc = true, time.FixedZone("far away", 11*3600) },
		"clientFoundRows":   func(c *mysql.Config) { c.ClientFoundRows = true },
		"time_zone":         func(c *mysql.Config) { c.Params = map[string]string{"time_zone": "'-08:00'"} },
		"sql_mode": func(c *mysql.Config) {
			c.Params = map[string]string{"sql_mode": "'ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES'"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ormtest.MariaDB(t, configure, func(t *testing.T, db *ormtest.Database) {
				shop := &Shop{DB: db.DB, Outbox: ormtest.Refusing(db.Outbox), Insert: inserts[db.Dialect]}
				ormtest.Exercise(t, db, shop.Place)
			})
		})
	}
}
