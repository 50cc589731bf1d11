package sqltext

import (
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider/store/feeds"
)

// Code returns what the server calls an error: MySQL's number, or PostgreSQL's SQLSTATE.
func Code(err error) (number uint16, state string) {
	var m *mysql.MySQLError
	if errors.As(err, &m) {
		return m.Number, string(m.SQLState[:])
	}
	var p interface{ SQLState() string } // of pgx and lib/pq
	if errors.As(err, &p) {
		return 0, p.SQLState()
	}
	return 0, ""
}

// IsMissingTable reports whether a table does not exist.
func IsMissingTable(err error) bool {
	number, state := Code(err)
	return number == 1146 || number == 0 && state == "42P01"
}

// isCollision reports that another transaction was in the way, and a new attempt may succeed: a deadlock, a wait for a lock that was
// given up, or a serialization failure.
func isCollision(err error) bool {
	number, state := Code(err)
	return number == 1213 || number == 1205 || number == 1020 || number == 0 && (state == "40001" || state == "40P01" || state == "55P03")
}

// IsDuplicate reports whether a unique index has refused a row.
func IsDuplicate(err error) bool {
	number, state := Code(err)
	return number == 1062 || number == 0 && state == "23505"
}

// IsThere reports that another session has created the same table meanwhile: PostgreSQL may find its row, its type or the table
// itself.
func IsThere(err error) bool {
	_, state := Code(err)
	return IsDuplicate(err) || state == "42P07" || state == "42710"
}

// Explained adds to an error of the server what can be done about it.
func Explained(err error) error {
	if IsMissingTable(err) {
		return fmt.Errorf("%w: run: postrider migrate up: %w", err, feeds.ErrSchema)
	}
	return err
}
