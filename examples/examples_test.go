package examples

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestExamples(t *testing.T) {
	for name, want := range map[string][]string{
		"pgx":         {`arrived: order.placed {"id":1,"item":"saddle"}`},
		"databasesql": {`arrived: order.placed {"id":1,"item":"bridle"}`},
		"embedded": {
			`arrived: rider/ann {"ride":1}`,
			`arrived: rider/ann {"ride":2}`,
			`arrived: rider/ann {"ride":3}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
			if got := runExample(t, name, address); got != strings.Join(want, "\n") {
				t.Errorf("printed\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
}

// TestQuickstart runs the only example that needs an existing schema, as "postrider dev" creates
// it.
func TestQuickstart(t *testing.T) {
	address := pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	migrator, err := db.Migrator(postgres.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := runExample(t, "quickstart", address), "order 1 is placed; its message is on the way"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	var written string
	const both = `SELECT o.item || ' ' || m.type || ' ' || convert_from(m.payload, 'UTF8')
		FROM orders o JOIN postrider.messages m ON m.aggregate_type = 'order' AND m.aggregate_id = o.id::text`
	if err := pool.QueryRow(t.Context(), both).Scan(&written); err != nil || written != `saddle order.placed {"id":1,"item":"saddle"}` {
		t.Errorf("%q, %v", written, err)
	}
}

// runExample runs an example and returns its output.
func runExample(t *testing.T, name, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // includes compilation
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", "./"+name)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+address)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, messages.String())
	}
	return strings.TrimSpace(out.String())
}
