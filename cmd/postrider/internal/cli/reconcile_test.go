package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestRelayReconcilers holds that a relay runs the reconcilers of its file: what they find it carries.
func TestRelayReconcilers(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.exec("CREATE TABLE " + c.schema + ".orders (id bigint, at timestamptz)")
	c.exec("INSERT INTO " + c.schema + ".orders VALUES (7, now() - interval '1 hour')")
	path := filepath.Join(t.TempDir(), "postrider.yaml")
	text := strings.NewReplacer("DSN", c.dsn, "SCHEMA", c.schema).Replace(`
databases:
  app: {url: "DSN", schema: SCHEMA}
destinations:
  out: {url: "stdout:"}
feeds:
  default: {}
reconcilers:
  orders:
    every: 1s
    query: SELECT id AS aggregate_id, json_build_object('found', id) AS payload FROM SCHEMA.orders WHERE at >= $1 AND at < $2
    type: order.placed
    dedup_key: "order:{aggregate_id}"
`)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, messages := &watched{text: `{"found" : 7}`}, &watched{text: never}
	serve := func() int {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out.seen, messages.seen = cancel, cancel
		return execute(ctx, streams{in: strings.NewReader(""), out: out, err: messages}, []string{"relay", "--config", path})
	}
	if code := serve(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, messages)
	}
	for _, want := range []string{"reconcile: reconciled", "job=orders found=1 fixed=1", "reconciler: stopped"} {
		if !strings.Contains(messages.String(), want) {
			t.Errorf("%q is not in\n%s", want, messages)
		}
	}
	if listed := c.must("reconcile", "ls"); !strings.Contains(listed, "orders") {
		t.Errorf("listed:\n%s", listed)
	}
	text = strings.Replace(text, "    query", "    destination: out\n    nothing", 1)
	if err := os.WriteFile(path, []byte(strings.Split(text, "    nothing")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := serve(); code != exitUsage || !strings.Contains(messages.String(), "cannot tell what it holds") {
		t.Errorf("exit code %d\n%s", code, messages)
	}
}
