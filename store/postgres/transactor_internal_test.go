package postgres

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/internal/need"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const system = 1
	for _, c := range []struct {
		name       string
		generation string // of the mark
		fate       fate
		committed  bool
		known      bool
		doubt      error
	}{
		{"committed", "g", fate{system, false, server{"g", 5}, false, "committed"}, true, true, nil},
		{"aborted", "g", fate{system, false, server{"g", 5}, false, "aborted"}, false, true, nil},
		{"open", "g", fate{system, false, server{"g", 5}, false, "in progress"}, false, false, errOpen},
		{"forgotten", "g", fate{system, false, server{"g", 5}, false, ""}, false, true, errForgotten},
		{"standby", "g", fate{system, true, server{"", 5}, false, ""}, false, false, errStandby},
		{"another server", "g", fate{2, false, server{"g", 5}, true, "aborted"}, false, true, errMoved},

		{"committed after a crash", "g", fate{system, false, server{"h", 5}, false, "committed"}, false, true, errCrashed},
		{"committed after a crash, nobody there yet", "g", fate{system, false, server{"", 5}, false, "committed"}, false, true, errCrashed},
		{"a witness does not outweigh the generation", "g", fate{system, false, server{"h", 5}, true, "committed"}, false, true, errCrashed},
		{"aborted after a crash", "g", fate{system, false, server{"h", 5}, false, "aborted"}, false, true, nil},
		{"somebody else's after a crash", "g", fate{system, false, server{"h", 5}, false, "in progress"}, false, false, errOpen},
		{"forgotten after a crash", "g", fate{system, false, server{"h", 5}, false, ""}, false, true, errForgotten},

		{"committed after a restart", "g", fate{system, false, server{"g", 6}, false, "committed"}, false, true, errCrashed},
		{"committed after a restart, with a wrong clock", "", fate{system, false, server{"", 6}, true, "committed"}, false, true, errCrashed},
		{"committed, with a witness", "", fate{system, false, server{"", 5}, true, "committed"}, true, true, nil},
		{"committed, without", "", fate{system, false, server{"", 5}, false, "committed"}, false, true, errCrashed},
		{"aborted, without", "", fate{system, false, server{"", 5}, false, "aborted"}, false, true, nil},
		{"open, without", "", fate{system, false, server{"", 5}, false, "in progress"}, false, false, errOpen},
	} {
		committed, known, doubt := mark{xid: "7", server: server{c.generation, 5}}.conclude(c.fate, system)
		if committed != c.committed || known != c.known || !errors.Is(doubt, c.doubt) || (doubt == nil) != (c.doubt == nil) {
			t.Errorf("%s: committed %v, known %v, %v", c.name, committed, known, doubt)
		}
	}
}

// The status query must succeed for every transaction ID.
func TestQuestionsAboutAnyNumber(t *testing.T) {
	t.Parallel()
	dsn := need.Env(t, "POSTRIDER_TEST_POSTGRES18", "postgres18")
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := Open(pool, Config{Schema: "not_there"})
	if err != nil {
		t.Fatal(err)
	}
	tr := db.Transactor().(*runner[pgx.Tx])
	asks, err := tr.prepare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	about := func(xid string) string {
		t.Helper()
		var f fate
		if err := tr.db.row(ctx, asks.status, []any{xid, 0.0}, f.targets()...); err != nil {
			t.Error(err)
		}
		return f.status
	}
	open, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback(ctx)
	var committed, current, future string
	if err := pool.QueryRow(ctx, "SELECT pg_current_xact_id()::text").Scan(&committed); err != nil {
		t.Fatal(err)
	}
	if err := open.QueryRow(ctx, "SELECT pg_current_xact_id()::text, (pg_current_xact_id()::text::bigint + 1000000)::text").
		Scan(&current, &future); err != nil {
		t.Fatal(err)
	}
	got := []string{about(committed), about(current), about(future)}
	if err := open.Rollback(ctx); err != nil {
		t.Error(err)
	}
	got = append(got, about(current))
	if want := []string{"committed", "in progress", "aborted", "aborted"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	server := func(severity, code string) error {
		return &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code}
	}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"constraint", server("ERROR", "23505"), true},
		{"serialization", server("ERROR", "40001"), true},
		{"raised", server("ERROR", "P0001"), true},
		{"cancelled", server("ERROR", "57014"), true},
		{"rolled back", pgx.ErrTxCommitRollback, true},
		{"closed", pgx.ErrTxClosed, true},
		{"cut", io.ErrUnexpectedEOF, false},
		{"shutdown", server("FATAL", "57P01"), false},
		{"shutdown, of another driver", server("", "57P01"), false},
		{"pooler", server("ERROR", "08P01"), false},
		{"unknown", server("ERROR", "40003"), false},
		{"anything fatal", server("FATAL", "42501"), false},
		{"internal", server("ERROR", "XX000"), false},
	} {
		if got := answered(c.err); got != c.want {
			t.Errorf("%s: answered is %v", c.name, got)
		}
	}
}
