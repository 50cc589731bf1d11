package postgres

import (
	"database/sql"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sqlState returns the server's code for an error, with any driver; empty if the error is not the server's.
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// yielded reports whether the server has given a transaction up for the sake of others.
func yielded(err error) bool {
	code := sqlState(err)
	return code == "40001" || code == "40P01" // serialization failure, deadlock
}

// ended reports whether somebody has committed or rolled back the transaction, or some statement of it has failed. Then
// nothing is known about the function's intentions, except that running it again is not among them.
func ended(err error) bool {
	return errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgx.ErrTxCommitRollback)
}

// lost reports whether an error came between us and the server, which has not said a word about the statement.
func lost(err error) bool {
	var refused *pgconn.ConnectError
	return !ended(err) && !errors.As(err, &refused) && doubtful(err)
}

// answered reports whether an error of COMMIT means that the transaction was not committed.
func answered(err error) bool { return ended(err) || !doubtful(err) }

// doubtful reports whether an error says nothing about what has become of a statement. Besides lost connections these are the
// words with which a server or a pooler ends a connection: they can come when the COMMIT has been done already, for instance
// while it waits for a standby.
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
