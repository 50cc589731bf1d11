package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/cmd/postrider/internal/top"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// plantTop makes two feeds with three pending messages each. One is paused; the other has a relay and messages deferred.
func plantTop(t *testing.T, c *cli) {
	t.Helper()
	c.must("migrate", "up")
	c.enqueue(3)
	d := c.database().Admin()
	for _, feed := range []string{"archive", "billing"} {
		if err := d.AddFeed(t.Context(), admin.By{Who: "test"}, feed, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.PauseFeed(t.Context(), admin.By{Who: "test"}, "archive", true); err != nil {
		t.Fatal(err)
	}
	c.exec(`INSERT INTO @schema@.members (feed, member, name, until) VALUES ('billing', gen_random_uuid(), 'relay', now() + interval '1 hour')`)
	c.exec(`INSERT INTO @schema@.deferred (feed, seq, shard, status, blocking, attempts, available_at, deferred_at, last_error, order_key,
		  priority, id, type, key, schema_version, created_at, occurred_at, payload)
		SELECT 'billing', 1000 + n, @schema@.shard_of(k, 8), status, blocking, attempts, due, now() - n * interval '3 hours 30 minutes', cause, k, 0,
		  ('01980000-0000-7000-8000-00000000000' || n)::uuid, 'order.placed', k, 1, now(), now(), ''
		FROM (VALUES
		  (4, 'order/17', 'retry', true, 3, now() + interval '5 hours 30 minutes', 'webhook: POST https://example.com/hook: 503 Service Unavailable'),
		  (5, 'order/17', 'waiting', true, 0, 'infinity', NULL),
		  (6, 'order/17', 'waiting', true, 0, 'infinity', NULL),
		  (7, E'kunde/日本語\x1b[31m', 'dead', true, 10, 'infinity', E'two\nlines'),
		  (8, 'order/4', 'dead', false, 10, 'infinity', 'too large'))
		  AS v(n, k, status, blocking, attempts, due, cause)`)
}

func TestTopOnce(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	plantTop(t, c)
	text := c.must("top", "--once", "--interval", "100ms")
	matchScreen(t, "once", text)
	if strings.Contains(text, "\x1b") {
		t.Errorf("there are escape sequences in %q", text)
	}
	var r top.Report
	if err := json.Unmarshal([]byte(c.must("top", "--once", "--json", "--interval", "100ms")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Feeds) != 2 || len(r.Blocked) != 2 {
		t.Fatalf("report %+v", r)
	}
	f := r.Feeds[1]
	if f.Name != "billing" || f.State != "blocked" || f.Pending != 3 || f.Retrying != 1 || f.Dead != 2 || f.Lag <= 0 || f.Enqueued == nil || *f.Enqueued != 0 {
		t.Errorf("feed %+v", f)
	}
	if b := r.Blocked[1]; b.Key != "order/17" || b.Waiting != 2 || b.ID.String() != "01980000-0000-7000-8000-000000000004" ||
		!strings.Contains(b.Cause, "503") {
		t.Errorf("blocked key %+v", b)
	}
}

// TestTopAsOperator looks with no more rights than an operator has.
func TestTopAsOperator(t *testing.T) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	pgtest.DropRoles(t, c.pool, c.schema)
	plantTop(t, c)
	c.must("migrate", "up", "--roles")
	t.Setenv("PGOPTIONS", "-c role="+c.schema+"_operator")
	if text := c.must("top", "--once", "--interval", "100ms"); !strings.Contains(text, "order/17") {
		t.Error(text)
	}
}

func TestTopRefuses(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	if r := c.run("top"); r.code != exitUsage || !strings.Contains(r.err, "needs a terminal") || !strings.Contains(r.err, "postrider status") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	r := c.run("top", "--json", "--interval", "1ms")
	if r.code != exitUsage || !strings.Contains(r.err, "--json needs --once") || !strings.Contains(r.err, "at least 100ms") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if r := c.run("top", "--once"); r.code != exitSchema || !strings.Contains(r.err, "migrate up") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}
