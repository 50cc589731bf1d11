// Package orm has one example for each database tool of Go programs: an order and its message,
// placed in one transaction. Each is tested with PostgreSQL and MariaDB.
//
//   - databasesql: the standard library alone
//   - sqlx, bun: their transactions embed a *sql.Tx
//   - gorm, ent: their transactions hide it, and adapters find it
//   - sqlc: generated code for database/sql and for pgx
package orm

import (
	"database/sql"
	"errors"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/table/mysql"
)

// ErrRefused is an error of the business logic and not of the database: a transaction can continue
// after it.
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
