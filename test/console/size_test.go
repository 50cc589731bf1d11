package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/test/playwright"
)

// fill creates a log of six days in which every tenth message is a dead letter of the feed
// "default". That feed has settled everything, "behind" nothing.
const fill = `
INSERT INTO postrider.messages (id, type, key, topic, tenant_id, payload, content_type, headers, created_at, slot)
  SELECT m.id, (ARRAY['order.placed', 'order.paid', 'order.shipped', 'customer.changed'])[1 + g % 4] || CASE WHEN g = @n@ / 10 THEN '.rare' ELSE '' END,
         m.key, 'orders', 'tenant' || g % 50, convert_to('{"order": ' || g || ', "amount": "' || g % 977 || '.50"}', 'UTF8'), 'application/json',
         '{"source": "shop"}'::jsonb, m.at, (postrider.slot_at(now()) + 2 + g * 6 / @n@) % 8
  FROM generate_series(1, @n@) g CROSS JOIN LATERAL (
    SELECT at, 'order/' || g % 100000, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000800' || lpad(to_hex(g), 13, '0'))::uuid
    FROM (SELECT now() - interval '6 days' + interval '6 days' / @n@ * g) t(at)) m(at, key, id);
INSERT INTO postrider.deferred (feed, seq, shard, status, blocking, available_at, order_key, priority, id, type, key, topic, tenant_id, content_type,
    attempts, schema_version, created_at, occurred_at, payload, last_error)
  SELECT 'default', m.seq, postrider.shard_of(m.key, 8), 'dead', m.seq % 1000 = 0, 'infinity', m.key, 0, m.id, m.type, m.key, m.topic, m.tenant_id, m.content_type, 5, 1,
         m.created_at, m.created_at, m.payload, (ARRAY['HTTP 422: amount ' || m.seq || ' is negative', 'HTTP 500 of order ' || m.seq,
           'schema 3 of ' || m.type || ' is unknown', 'nats: maximum payload exceeded', 'customer ' || m.seq || ' is not known here'])[1 + m.seq % 5]
  FROM postrider.messages m WHERE m.seq % 10 = 0;
INSERT INTO postrider.checkpoints (feed, shard, n, released, until, lo, starts, s1)
  SELECT c.feed, c.shard, c.n + 1, true, now(), (SELECT max(seq) FROM postrider.messages),
         ARRAY(SELECT (SELECT max(seq) FROM postrider.messages) FROM pg_snapshot_xip(pg_current_snapshot())), pg_current_snapshot()
  FROM postrider.cursors c WHERE c.feed = 'default'`

// lists are the requests of the pages.
var lists = []string{
	"overview", "series", "feeds", "feeds/default", "relays", "messages?feed=default", "messages?feed=default&type=order.placed.rare",
	"messages?feed=default&key=order/77", "messages?feed=default&status=dead", "messages?feed=default&tenant=tenant7",
	"messages?feed=default&topic=none", "messages?feed=behind&status=pending", "dead", "dead?type=order.paid", "dead?error=negative",
	"dead?error=nothing", "dead?key=order/70", "dead/count", "dead/count?error=negative", "dead/groups", "dead/groups?error=negative", "keys",
	"consumers", "idempotency", "sagas", "sagas/count", "reconcilers", "databases", "audit", "replays",
}

// TestSize measures the console of a long log: how long its lists and its first page take, and the
// database load of an open page.
func TestSize(t *testing.T) {
	need.Long(t, "10 million messages")
	n := 10_000_000
	if text := os.Getenv("POSTRIDER_CONSOLE_MESSAGES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	db := newDatabase(t, "size")
	for _, sql := range []string{
		"SELECT postrider.add_feed('test', '', 'default', true), postrider.add_feed('test', '', 'behind', true)",
		strings.ReplaceAll(fill, "@n@", strconv.Itoa(n)), "VACUUM ANALYZE postrider.messages", "VACUUM ANALYZE postrider.deferred",
	} {
		if _, err := db.pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	address := port.For(t)
	start(t, "relay", "--dsn", db.dsn, "--to", "discard:", "--console", address)
	base := "http://" + address
	eventually(t, "the console", func() error { return getJSON(base+"/api/v1/me", "", new(any)) })

	for _, list := range lists {
		var worst time.Duration
		for range 5 {
			begun := time.Now()
			if err := getJSON(base+"/api/v1/"+list, "", new(any)); err != nil {
				t.Errorf("%s: %v", list, err)
			}
			worst = max(worst, time.Since(begun))
		}
		t.Logf("%8.1f ms  %s", worst.Seconds()*1000, list)
		if worst > 300*time.Millisecond {
			t.Errorf("%s takes %v", list, worst)
		}
	}
	playwright.Install(t, "browser")
	for range 3 {
		t.Logf("first page: %s", paint(t, base))
	}

	watching, stop := context.WithCancel(t.Context())
	defer stop()
	watch(t, watching, base)
	watched := share(t, db, time.Minute)
	t.Logf("the console's connections use %.3f %% of the machine while somebody watches", 100*watched)
	if watched > 0.01 {
		t.Errorf("the console costs %.2f %% of the machine", 100*watched)
	}
}

// paint opens a page in a browser and returns the browser's timing data.
func paint(t *testing.T, url string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "paint.mjs", url)
	cmd.Dir = "browser"
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the browser: %v", err)
	}
	var times struct{ Paint, Ready float64 }
	if err := json.Unmarshal(out, &times); err != nil {
		t.Fatal(err)
	}
	if times.Paint > 1000 {
		t.Errorf("the first paint takes %.0f ms", times.Paint)
	}
	return strings.TrimSpace(string(out))
}

// watch reads the stream of samples until ctx ends, as an open page does.
func watch(t *testing.T, ctx context.Context, base string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() {
		t.Fatal("no stream")
	}
	go func() {
		defer resp.Body.Close()
		for lines.Scan() {
		}
	}()
}

// share returns the fraction of all processors that the console's database sessions use.
func share(t *testing.T, db database, during time.Duration) float64 {
	t.Helper()
	used := func() (ticks float64) {
		rows, err := db.pool.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = 'postrider console' AND datname = current_database()")
		if err != nil {
			t.Fatal(err)
		}
		pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil || len(pids) == 0 {
			t.Fatalf("the console has %d connections, %v", len(pids), err)
		}
		for _, pid := range pids {
			data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			if err != nil {
				t.Fatal(err)
			}
			fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
			for _, field := range fields[11:13] { // utime, stime
				n, err := strconv.ParseFloat(field, 64)
				if err != nil {
					t.Fatal(err)
				}
				ticks += n
			}
		}
		return ticks
	}
	before := used()
	timer := time.NewTimer(during)
	defer timer.Stop()
	<-timer.C
	return (used() - before) / 100 / during.Seconds() / float64(runtime.NumCPU())
}
