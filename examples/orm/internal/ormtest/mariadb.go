package ormtest

import (
	"database/sql"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider/examples/orm"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/mysql"
	"github.com/postrider/postrider/store/table/tabletest"
)

// MariaDB runs f on MariaDB, with the driver options that most programs use: none, unless configure
// sets some.
func MariaDB(t *testing.T, configure func(*driver.Config), f func(t *testing.T, db *Database)) {
	t.Helper()
	t.Run("mariadb", func(t *testing.T) {
		server := tabletest.MariaDB(t)
		tabletest.Migrate(t, server, table.Config{})
		cfg := must(driver.ParseDSN(server.Address))
		cfg.InterpolateParams = false
		if configure != nil {
			configure(cfg)
		}
		db := sql.OpenDB(must(driver.NewConnector(cfg)))
		t.Cleanup(func() { _ = db.Close() })
		must(db.ExecContext(t.Context(), orders))
		f(t, &Database{
			DB:      db,
			Outbox:  must(orm.Outbox(MySQL, db)),
			Dialect: MySQL,
			store:   must(mysql.Open(server.DB, mysql.Config{})).Feeds(),
		})
	})
}
