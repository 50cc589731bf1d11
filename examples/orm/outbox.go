// Package orm holds one example for each tool that Go programs reach their database with: an order and its message, placed in
// one transaction. Each is tested with PostgreSQL and MariaDB.
//
//   - databasesql: the standard library alone
//   - sqlx, bun: whose transactions embed a *sql.Tx
//   - gorm, ent: whose transactions hide it, with the adapters that find it
//   - sqlc: generated code for database/sql and for pgx
package orm

import (
	"database/sql"
	"errors"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/table/mysql"
)

// ErrRefused is an error of the business, and not of the database: a transaction can go on after it.
var ErrRefused = errors.New("the order is refused")

//docs:begin outbox

// Outbox returns the outbox for a database. One is enough for the whole program.
func Outbox(dialect string, sqlDB *sql.DB) (postrider.Outbox[*sql.Tx], error) {
	if dialect == "mysql" { // MariaDB too
		db, err := mysql.Open(sqlDB, mysql.Config{})
		if err != nil {
			return nil, err
		}
		return db.Outbox(), nil
	}
	db, err := postgres.OpenSQL(sqlDB, postgres.Config{})
	if err != nil {
		return nil, err
	}
	return db.Outbox(), nil
}

//docs:end
