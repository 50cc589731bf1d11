package adopt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
	"github.com/postrider/postrider/test/built"
)

// program runs the postrider command in a folder with a configuration file.
type program struct {
	t      *testing.T
	path   string
	folder string
	env    []string
}

func build(t *testing.T, env ...string) *program {
	t.Helper()
	return &program{t: t, path: built.Program(t, "cmd/postrider"), folder: t.TempDir(), env: append(os.Environ(), env...)}
}

func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir, cmd.Env = p.folder, p.env
	return cmd
}

// run runs a command and returns its output.
func (p *program) run(args ...string) string {
	p.t.Helper()
	cmd := p.command(p.t.Context(), args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("postrider %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), said.String())
	}
	return out.String()
}

// start runs a command until the returned function is called or the test ends.
func (p *program) start(args ...string) {
	p.t.Helper()
	cmd := p.command(context.Background(), args...)
	cmd.Stderr = p.t.Output()
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("postrider %s: %v", strings.Join(args, " "), err)
		}
	})
}

// TestCommand adopts a table with the command line, as the documentation describes, and moves the
// application to the log.
func TestCommand(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	address := pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	p := build(t, "DATABASE_URL="+address, "DESTINATION_URL="+q.url)
	pool := pgtest.Pool(t, address)
	d := named(t, "events-bigserial")
	s := &scene{t: t, d: d, queue: q, server: tabletest.Server{Dialect: table.PostgreSQL, DB: open(t, address), Address: address}}
	d.create(t, s.server)

	proposed := p.run("adopt", "outbox_events")
	name, _, _ := strings.Cut(strings.TrimPrefix(proposed, "databases:\n  "), ":")
	file, _, _ := strings.Cut(proposed, "feeds:")
	file = strings.Replace(file, "destinations:", "  log: {url: \"${DATABASE_URL}\"}\ndestinations:", 1)
	file += "feeds:\n" +
		"  old: {database: " + name + ", destination: out, routes: [{name: " + q.name + "}]}\n" +
		"  live: {database: log, destination: out, routes: [{name: " + q.name + "}]}\n"
	if err := os.WriteFile(filepath.Join(p.folder, "postrider.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run("migrate", "up", "--database", name)
	p.run("migrate", "up", "--database", "log")
	p.start("relay")
	write := func(n int) {
		t.Helper()
		if err := s.write(event{aggregate: "42", n: n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	write(2)
	until(t, "the rows are published", func() bool { return s.count(d.published) == 2 })

	if sql := p.run("adopt", "outbox_events", "--to-log", "--feed", "live", "--database", name, "--dry-run"); !strings.Contains(sql, "CREATE TRIGGER") {
		t.Errorf("the rehearsal prints %s", sql)
	}
	p.run("adopt", "outbox_events", "--to-log", "--feed", "live", "--database", name, "--yes", "--reason", "to the log")
	write(3)
	_, err := pool.Exec(t.Context(), `SELECT postrider.enqueue('order.changed', 'order', '42', '{"n": 4, "of": "42"}')`, pgx.QueryExecModeExec)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "all messages are in the queue", func() bool { return q.length() == 4 })
	came := q.take()
	if inOrder(t, came) != 4 {
		t.Errorf("what came is %v", came)
	}
	var status struct {
		Installed, Paused bool
		Waiting, Relays   int
	}
	text := p.run("adopt", "outbox_events", "--to-log", "--status", "--feed", "live", "--database", name, "--json")
	if err := json.Unmarshal([]byte(text), &status); err != nil || !status.Installed || status.Paused || status.Waiting != 0 || status.Relays != 1 {
		t.Errorf("the status is %s, %v", text, err)
	}
	refused, err := p.command(t.Context(), "adopt", "outbox_events", "--to-log", "--finish", "--yes", "--feed", "live", "--database", name).CombinedOutput()
	if err == nil || !strings.Contains(string(refused), "a process has written to outbox_events") {
		t.Errorf("finishing too early: %v, %s", err, refused)
	}
	p.run("adopt", "outbox_events", "--to-log", "--finish", "--yes", "--quiet", "1ms", "--feed", "live", "--database", name)
	write(5) // a writer that was not moved: the table's relay still runs
	until(t, "the late row is published", func() bool { return s.count(d.published) == 4 && q.length() == 1 })
}

// TestTenantsApart serves one table with one feed for each of two tenants. Rows of a third tenant,
// which no feed has, stay pending.
func TestTenantsApart(t *testing.T) {
	t.Parallel()
	acme, zeta := newQueue(t), newQueue(t)
	address := pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	p := build(t, "DATABASE_URL="+address, "DESTINATION_URL="+acme.url)
	db := open(t, address)
	d := named(t, "bento")
	d.create(t, tabletest.Server{Dialect: table.PostgreSQL, DB: db, Address: address})
	file := `databases: {shop: {url: "${DATABASE_URL}", engine: classic, layout: bento}}
destinations: {out: {url: "${DESTINATION_URL}"}}
feeds:
  acme: {only: {tenants: [acme]}, routes: [{name: ` + acme.name + `}]}
  zeta: {only: {tenants: ["z*"]}, routes: [{name: ` + zeta.name + `}]}
`
	if err := os.WriteFile(filepath.Join(p.folder, "postrider.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run("config", "validate")
	p.run("migrate", "up", "--database", "shop")
	p.start("relay")
	for i := range 30 {
		_, err := db.ExecContext(t.Context(), `INSERT INTO outbox (id, tenant_id, topic, aggregate_id, type, payload, headers)
			VALUES (gen_random_uuid(), $1, 'orders', 'a', 'order.placed', '{}', '{}')`, []string{"acme", "zeta", "other"}[i%3])
		if err != nil {
			t.Fatal(err)
		}
	}
	until(t, "both tenants have their messages", func() bool { return acme.length() == 10 && zeta.length() == 10 })
	until(t, "they are marked", func() bool {
		var sent, others int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE status = 'SENT'),
			count(*) FILTER (WHERE tenant_id = 'other' AND status = 'NEW') FROM outbox`).Scan(&sent, &others)
		if err != nil || sent > 20 || others != 10 {
			t.Fatalf("%d rows are sent, and %d of the tenant without a feed wait, of 10: %v", sent, others, err)
		}
		return sent == 20
	})
}
