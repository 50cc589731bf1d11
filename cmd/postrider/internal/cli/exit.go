package cli

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider/store/feeds"
)

// Exit codes are part of the interface: scripts branch on them.
const (
	exitOK          = 0   // Done, and nothing needs attention.
	exitFailure     = 1   // It failed, or something needs attention, as `status`, `doctor` and `healthcheck` say.
	exitUsage       = 2   // A mistake in the command line, the file or a variable; with `doctor` also: it has found a problem.
	exitSchema      = 5   // The schema is missing, or has another version: `postrider migrate status`.
	exitUnreachable = 6   // The database cannot be reached, or the connection was lost.
	exitInterrupted = 130 // Interrupted by a signal.
)

// usageError is a mistake in the command line, the file or a variable.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hintedError adds what to type next.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, s streams, args []string) int {
	root, a := newRoot(s) //nolint:contextcheck // commands get the context when they run
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(ctx, err)
	if code == exitInterrupted {
		s.notef("interrupted")
		return code
	}
	s.notef("%s", strings.TrimPrefix(a.scrub(err.Error()), "postrider: "))
	if hint := a.hint(err, code); hint != "" {
		s.notef("%s", hint)
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	var parse *pgconn.ParseConfigError
	switch {
	case errors.As(err, &usage), errors.As(err, &parse):
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted
	case errors.Is(err, feeds.ErrSchema):
		return exitSchema
	case isUnreachable(err):
		return exitUnreachable
	}
	return exitFailure
}

// isUnreachable reports whether the database cannot be reached or the connection was lost.
func isUnreachable(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	return errors.As(err, &connect) || errors.As(err, &network) && network.Op != "listen" || hasState(err, "57P01", "57P02", "57P03") ||
		errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) || hasNumber(err, 1040, 1044, 1045, 1049, 1053)
}

// hasNumber reports whether MySQL or MariaDB has returned one of the error numbers.
func hasNumber(err error, numbers ...uint16) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && slices.Contains(numbers, my.Number)
}

// hasState reports whether PostgreSQL has returned one of the SQLSTATEs.
func hasState(err error, states ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(states, pg.Code)
}

// hint returns what to type next.
func (a *app) hint(err error, code int) string {
	var hinted hintedError
	switch {
	case errors.As(err, &hinted):
		return hinted.hint
	case code == exitUsage:
		return "for the flags: add --help"
	case code == exitUnreachable:
		return "to try the address: " + a.db.tryCommand()
	case hasState(err, "42P05", "26000"): // a prepared statement that already exists, or does not exist
		return "behind a pooler, add to the address: default_query_exec_mode=exec"
	}
	return ""
}
