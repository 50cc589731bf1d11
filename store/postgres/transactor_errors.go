package postgres

import (
	"database/sql"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sqlState returns the SQLSTATE of an error, with any driver. It is empty if the error does not
// come from the server.
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// yielded reports whether the server aborted a transaction in favour of others.
func yielded(err error) bool {
	code := sqlState(err)
	return code == "40001" || code == "40P01" // serialization failure, deadlock
}

// ended reports whether the function itself committed or rolled back the transaction, or ignored
// the failure of a statement in it. Then nothing is known about the function's intentions, so it
// must not run again.
func ended(err error) bool {
	return errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgx.ErrTxCommitRollback)
}

// lost reports whether the connection failed before the server answered the statement.
func lost(err error) bool {
	var refused *pgconn.ConnectError
	return !ended(err) && !errors.As(err, &refused) && doubtful(err)
}

// answered reports whether an error of COMMIT means that the transaction was not committed.
func answered(err error) bool { return ended(err) || !doubtful(err) }

// doubtful reports whether an error leaves open what happened to a statement. Besides lost
// connections, these are the errors with which a server or a pooler ends a connection: they can
// arrive after the COMMIT took effect, for instance while it waits for a standby.
func doubtful(err error) bool {
	code := sqlState(err)
	if len(code) != 5 {
		return true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC") {
		return true
	}
	switch code {
	case "40003", "25P03", "25P04": // completion unknown, idle in transaction too long, transaction too long
		return true
	}
	switch code[:2] {
	case "08", "53", "58", "XX": // connection, resources, operating system, internal
		return true
	}
	return strings.HasPrefix(code, "57P") // operator intervention
}
