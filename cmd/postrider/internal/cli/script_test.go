package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestScripts runs testdata/script, each with a schema of its own. Beside testscript's own commands there are:
//
//	postrider ARGS...          runs the command, which has to succeed
//	exits CODE ARGS...         runs the command, which has to end with an exit code
//	enqueue TYPE KEY COUNT     writes messages with a number each, as payload
//	carry FEED DEAD            delivers what there is, except for the first DEAD messages, which become dead letters
//	hold FEED NAME             defers what there is: it waits for a name that accepts nothing
//	terminal ARGS...           runs the command at the terminal that ttyin -stdin has made
//	sql STATEMENT              with @schema@ replaced; the first column of its first row goes to the variable VALUE
func TestScripts(t *testing.T) {
	dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	pool := pgtest.Pool(t, dsn)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			s := &script{pool, fmt.Sprintf("script%d_%d", os.Getpid(), schemas.Add(1))}
			env.Values["script"] = s
			env.Setenv("SCHEMA", s.schema)
			env.Setenv("DATABASE_URL", dsn)
			env.Setenv("POSTRIDER_ACTOR", "ann@work")
			env.Setenv(runAsCommand, "1")
			env.Defer(func() { pgtest.Drop(t, pool, s.schema) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"postrider": func(ts *testscript.TestScript, _ bool, args []string) { exits(ts, exitOK, args) },
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				code, err := strconv.Atoi(args[0])
				ts.Check(err)
				exits(ts, code, args[1:])
			},
			"terminal": func(ts *testscript.TestScript, _ bool, args []string) {
				all := append([]string{"-c", `"$0" "$@" >/dev/tty 2>&1; true`, os.Args[0]}, args...)
				ts.Check(ts.Exec("sh", append(all, "--schema", ts.Getenv("SCHEMA"))...))
			},
			"enqueue": func(ts *testscript.TestScript, _ bool, args []string) {
				_, err := of(ts).query(`SELECT @schema@.enqueue($1, payload => json_build_object('n', n), key => $2)::text
					FROM generate_series(1, $3::int) n`, args[0], args[1], args[2])
				ts.Check(err)
			},
			"carry": func(ts *testscript.TestScript, _ bool, args []string) {
				dead, err := strconv.Atoi(args[1])
				ts.Check(err)
				ts.Check(of(ts).carry(args[0], dead))
			},
			"hold": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(of(ts).once(args[0], math.MaxInt, feeds.Deferral{Status: feeds.StatusHeld, Name: args[1], Cause: "queue is full"}))
			},
			"sql": func(ts *testscript.TestScript, _ bool, args []string) {
				value, err := of(ts).query(args[0])
				ts.Check(err)
				ts.Setenv("VALUE", value)
			},
		},
	})
}

func exits(ts *testscript.TestScript, want int, args []string) {
	err := ts.Exec(os.Args[0], append(args, "--schema", ts.Getenv("SCHEMA"))...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	code := exitOK
	if exit != nil {
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// script is what the commands of a script work on.
type script struct {
	pool   *pgxpool.Pool
	schema string
}

func of(ts *testscript.TestScript) *script {
	s, _ := ts.Value("script").(*script)
	return s
}

func (s *script) query(sql string, args ...any) (first string, err error) {
	sql = strings.ReplaceAll(sql, "@schema@", pgx.Identifier{s.schema}.Sanitize())
	rows, err := s.pool.Query(context.Background(), sql, args...)
	if err != nil {
		return "", err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

// carry delivers all but the first few messages, which become dead letters.
func (s *script) carry(name string, dead int) error {
	return s.once(name, dead, feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused: unknown customer \x1b[31m"})
}

// once is a relay for one round, which defers the first few messages and delivers the others.
func (s *script) once(name string, few int, as feeds.Deferral) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := postgres.Open(s.pool, postgres.Config{Schema: s.schema})
	if err != nil {
		return err
	}
	feed, err := db.Feeds().Open(ctx, name, feeds.Member{Name: "script", Lease: time.Minute, Create: true})
	if err != nil {
		return err
	}
	share, err := feed.Balance(ctx)
	if err != nil {
		return err
	}
	var want []feeds.Demand
	for _, shard := range share.Shards {
		want = append(want, feeds.Demand{Shard: shard, Limit: 1000})
	}
	batches, err := feed.Read(ctx, want)
	if err != nil {
		return err
	}
	marks := make(map[int]feeds.Mark)
	for _, shard := range share.Shards {
		marks[shard] = feeds.Mark{Shard: shard}
	}
	var deferrals []feeds.Deferral
	for i := range batches {
		b := &batches[i]
		for n := range min(few, len(b.Messages)) {
			as.Batch, as.Index, as.Blocking = b, n, b.Messages[n].OrderKey() != ""
			deferrals = append(deferrals, as)
		}
		few -= min(few, len(b.Messages))
		marks[b.Shard] = feeds.Mark{Shard: b.Shard, Batch: b, Done: len(b.Messages)}
	}
	if len(deferrals) > 0 {
		if err := feed.Defer(ctx, deferrals); err != nil {
			return err
		}
	}
	var all []feeds.Mark
	for _, m := range marks {
		all = append(all, m)
	}
	if err := feed.Release(ctx, all); err != nil {
		return err
	}
	return feed.Close(ctx)
}
