package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// runAsCommand makes the test program behave as the command, for tests that send signals to it.
const runAsCommand = "POSTRIDER_TEST_RUN_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runAsCommand) != "" {
		os.Exit(run())
	}
	// What a developer's shell may say about databases.
	for _, name := range []string{"POSTRIDER_DSN", "DATABASE_URL", "POSTRIDER_CONFIG"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// cli runs command lines against one schema of one server.
type cli struct {
	t      *testing.T
	dsn    string
	schema string
	pool   *pgxpool.Pool
	answer string // typed by the user; empty: nobody is there
}

var schemas atomic.Int64

func newCLI(t *testing.T, dsn string) *cli {
	t.Helper()
	c := &cli{t: t, dsn: dsn, schema: fmt.Sprintf("cli%d_%d", os.Getpid(), schemas.Add(1)), pool: pgtest.Pool(t, dsn)}
	t.Cleanup(func() { pgtest.Drop(t, c.pool, c.schema) })
	return c
}

// result is what came of a command line.
type result struct {
	code     int
	out, err string
}

func (c *cli) run(args ...string) result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var out, messages bytes.Buffer
	s := streams{in: strings.NewReader(c.answer), out: &out, err: &messages, asks: c.answer != ""}
	code := execute(ctx, s, append(args, "--dsn", c.dsn, "--schema", c.schema))
	return result{code, out.String(), messages.String()}
}

// must runs a command line that has to succeed, and returns its output.
func (c *cli) must(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	if r.code != exitOK {
		c.t.Fatalf("postrider %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// exec runs a statement with @schema@ replaced.
func (c *cli) exec(sql string, args ...any) {
	c.t.Helper()
	sql = strings.ReplaceAll(sql, "@schema@", pgx.Identifier{c.schema}.Sanitize())
	if _, err := c.pool.Exec(c.t.Context(), sql, args...); err != nil {
		c.t.Fatal(err)
	}
}

// enqueue writes messages of one key, with a number each.
func (c *cli) enqueue(count int) {
	c.t.Helper()
	c.exec(`SELECT @schema@.enqueue('test.happened', 'test', '1', json_build_object('n', n)) FROM generate_series(1, $1) n`, count)
}

func (c *cli) database() *postgres.DB {
	c.t.Helper()
	db, err := postgres.Open(c.pool, postgres.Config{Schema: c.schema})
	if err != nil {
		c.t.Fatal(err)
	}
	return db
}

// watched is a writer that calls back as soon as what was written contains a text.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	text string
	seen func()
}

var _ io.Writer = (*watched)(nil)

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if w.seen != nil && strings.Contains(w.buf.String(), w.text) {
		w.seen()
		w.seen = nil
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
