package ormtest

import (
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider/examples/orm"
	"github.com/postrider/postrider/store/classic"
	"github.com/postrider/postrider/store/classic/classictest"
)

// MariaDB runs f on MariaDB, with the driver options that most programs use: none, unless configure
// sets some.
func MariaDB(t *testing.T, configure func(*mysql.Config), f func(t *testing.T, db *Database)) {
	t.Helper()
	t.Run("mariadb", func(t *testing.T) {
		server := classictest.MariaDB(t)
		classictest.Migrate(t, server, classic.Config{})
		cfg := must(mysql.ParseDSN(server.Address))
		cfg.InterpolateParams = false
		if configure != nil {
			configure(cfg)
		}
		db := sql.OpenDB(must(mysql.NewConnector(cfg)))
		t.Cleanup(func() { _ = db.Close() })
		must(db.ExecContext(t.Context(), orders))
		f(t, &Database{
			DB:      db,
			Outbox:  must(orm.Outbox(MySQL, db)),
			Dialect: MySQL,
			store:   must(classic.Open(server.DB, classic.Config{})).Feeds(),
		})
	})
}
