package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// tableCLI is a command line for a place with a table, and for the file that adopts it.
type tableCLI struct {
	t *testing.T
	tabletest.Server
}

// newTable goes to a server. Commands find it by $DATABASE_URL, and the file in a folder of its own.
func newTable(t *testing.T, s tabletest.Server) *tableCLI {
	t.Helper()
	address := s.Address
	if s.Dialect == table.MySQL {
		cfg, err := mysql.ParseDSN(s.Address)
		if err != nil {
			t.Fatal(err)
		}
		address = (&url.URL{Scheme: "mysql", User: url.UserPassword(cfg.User, cfg.Passwd), Host: cfg.Addr, Path: "/" + cfg.DBName}).String()
	}
	t.Setenv("DATABASE_URL", address)
	t.Setenv("POSTRIDER_CONFIG", filepath.Join(t.TempDir(), "postrider.yaml"))
	return &tableCLI{t, s}
}

func (c *tableCLI) exec(statements ...string) {
	c.t.Helper()
	for _, statement := range statements {
		if _, err := c.DB.ExecContext(c.t.Context(), statement); err != nil {
			c.t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (c *tableCLI) run(args ...string) result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var out, messages bytes.Buffer
	code := execute(ctx, streams{in: strings.NewReader(""), out: &out, err: &messages}, args)
	return result{code, out.String(), messages.String()}
}

func (c *tableCLI) must(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	if r.code != exitOK {
		c.t.Fatalf("postrider %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// relay carries until the output has a text.
func (c *tableCLI) relay(text string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	out := &watched{text: text, seen: cancel}
	var messages bytes.Buffer
	code := execute(ctx, streams{in: strings.NewReader(""), out: out, err: &messages}, append([]string{"relay"}, args...))
	if code != exitOK || !strings.Contains(out.String(), text) {
		c.t.Fatalf("relay: exit code %d\n%s%s", code, out.String(), messages.String())
	}
	return out.String()
}

const outboxEvents = `CREATE TABLE outbox_events (id %s PRIMARY KEY, aggregate_type varchar(50), aggregate_id varchar(50), event_type varchar(50),
	routing_key varchar(50), payload json NOT NULL, status varchar(20) NOT NULL DEFAULT 'pending', attempts int NOT NULL DEFAULT 0,
	available_at timestamp NOT NULL DEFAULT now(), published_at timestamp NULL, created_at timestamp NOT NULL DEFAULT now())`

// TestAdopt goes the way that docs/moving/adopt-a-table.md describes.
func TestAdopt(t *testing.T) {
	tabletest.InTurn(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		c := newTable(t, open(t))
		key := map[table.Dialect]string{table.MySQL: "bigint AUTO_INCREMENT", table.PostgreSQL: "bigserial"}[c.Dialect]
		c.exec(fmt.Sprintf(outboxEvents, key), `INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
			VALUES ('order', '1', 'order.placed', '{"n":1}'), ('order', '1', 'order.paid', '{"n":2}'), ('order', '1', 'order.shipped', '{"n":3}')`)

		var found struct {
			Preset   string
			Missing  []adopt.Remedy
			Warnings []adopt.Warning
			Config   string
			Next     []string
		}
		if err := json.Unmarshal([]byte(c.must("adopt", "outbox_events", "--json")), &found); err != nil {
			t.Fatal(err)
		}
		if found.Preset != "events-bigserial" || len(found.Missing) == 0 || len(found.Warnings) == 0 {
			t.Errorf("%+v", found)
		}
		r := c.run("adopt", "outbox_events")
		if r.code != exitOK || r.out != found.Config || !strings.Contains(r.err, found.Next[0]) {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		for sql := range strings.Lines(c.must("adopt", "outbox_events", "--sql")) {
			c.exec(strings.TrimSuffix(strings.TrimSpace(sql), ";"))
		}
		if left := c.must("adopt", "outbox_events", "--sql"); left != "" {
			t.Errorf("still missing: %s", left)
		}

		if err := os.WriteFile(os.Getenv("POSTRIDER_CONFIG"), []byte(found.Config), 0o600); err != nil {
			t.Fatal(err)
		}
		c.must("config", "validate")
		name := strings.Fields(found.Next[0])[4]
		if r := c.run("migrate", "status", "--database", name); r.code != exitSchema || !strings.Contains(r.err, "migrate up --database "+name) {
			t.Errorf("exit code %d\n%s", r.code, r.err)
		}
		c.must(strings.Fields(found.Next[0])[1:]...)
		c.must("migrate", "status", "--database", name)
		out := c.relay(`{"n":3}`)
		if first, second := strings.Index(out, `"n":1`), strings.Index(out, `"n":2`); first < 0 || second < first {
			t.Errorf("the order of a key is not kept:\n%s", out)
		}
		var waiting int
		if err := c.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM outbox_events WHERE status <> 'published'").Scan(&waiting); err != nil || waiting != 0 {
			t.Errorf("%d rows are not published: %v", waiting, err)
		}
		for _, line := range []string{"feeds ls", "messages ls", "dead ls", "keys blocked", "audit ls"} {
			c.must(append(strings.Fields(line), "--database", name)...)
		}
		if r := c.run("status", "--database", name); r.code == exitUsage || !strings.HasPrefix(r.out, "table outbox_events: ") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		for _, line := range []string{"saga ls", "rebase --dry-run", "replay ls"} {
			if r := c.run(append(strings.Fields(line), "--database", name)...); r.code != exitUsage || !strings.Contains(r.err, "this needs the log") {
				t.Errorf("%s: exit code %d\n%s", line, r.code, r.err)
			}
		}
	})
}

// TestClassicOwnTable uses the table that migrations create.
func TestClassicOwnTable(t *testing.T) {
	tabletest.InTurn(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		c := newTable(t, open(t))
		if r := c.run("enqueue", "order.placed", "--engine", "classic"); r.code != exitSchema || !strings.Contains(r.err, "migrate up") {
			t.Errorf("without its tables: exit code %d\n%s", r.code, r.err)
		}
		if sql := c.must("migrate", "print", "--engine", "classic"); !strings.Contains(sql, "postrider_outbox") {
			t.Error(sql)
		}
		c.must("migrate", "up", "--engine", "classic")
		line := []string{"enqueue", "order.placed", "--aggregate", "order/1", "--payload", `{"n":1}`, "--dedup-key", "one", "--engine", "classic"}
		c.must(line...)
		if r := c.run(line...); !strings.Contains(r.err, "was used before") {
			t.Errorf("the same fact: exit code %d\n%s%s", r.code, r.out, r.err)
		}
		c.relay(`{"n":1}`, "--engine", "classic", "--to", "stdout:", "--canary", "0")
		c.must("migrate", "down", "--to", "0", "--yes", "--engine", "classic")
		if r := c.run("status", "--engine", "classic"); r.code != exitSchema {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
	})
}

func TestAdoptRefuses(t *testing.T) {
	c := newTable(t, tabletest.MariaDB(t))
	c.exec("CREATE TABLE users (id int PRIMARY KEY, age int)")
	secret := "mysql://app:top-secret@127.0.0.1:1/shop"
	for _, line := range []struct {
		code int
		args string
		says string
	}{
		{exitFailure, "adopt nowhere", "there is no such table"},
		{exitFailure, "adopt users", "this is not a table of messages"},
		{exitUsage, "adopt", "takes one table"},
		{exitUsage, "adopt users --preset prism", "want one of"},
		{exitUsage, "adopt users --engine log", "needs PostgreSQL"},
		{exitUsage, "status --database shop --engine classic", "contradict each other"},
		{exitUnreachable, "adopt users --dsn " + secret, "refused"},
		{exitUnreachable, "migrate up --dsn " + secret, "refused"},
		{exitUsage, "migrate up --dsn " + secret + "?multiStatements=true", "there are tls"},
		{exitUsage, "migrate up --shards 4", "is for the log"},
	} {
		r := c.run(strings.Fields(line.args)...)
		if r.code != line.code || !strings.Contains(r.err, line.says) || strings.Contains(r.err, "top-secret") {
			t.Errorf("%s: exit code %d, want %d\n%s", line.args, r.code, line.code, r.err)
		}
	}
}

// TestFilesKnowTheClassicEngine holds that package config, which needs no driver, and the engine have the same names.
func TestFilesKnowTheClassicEngine(t *testing.T) {
	t.Parallel()
	if got, want := config.TableColumns(), table.ColumnKeys(); !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
	names := presetNames()
	slices.Sort(names)
	if got := config.TablePresets(); !slices.Equal(got, names) {
		t.Errorf("presets %q, want %q", got, names)
	}
}

// TestTablesReadBack writes layouts down and reads them again.
func TestTablesReadBack(t *testing.T) {
	t.Parallel()
	for _, p := range adopt.Presets() {
		changed := map[string]func(*table.Layout){
			"as it is":      func(*table.Layout) {},
			"other table":   func(l *table.Layout) { l.Table = "shop.events" },
			"other payload": func(l *table.Layout) { l.Columns.Payload = "body"; l.DefaultContentType = "text/plain" },
			"no time":       func(l *table.Layout) { l.Columns.CreatedAt = ""; l.OrderBy = []string{l.ID} },
			"other order":   func(l *table.Layout) { l.OrderBy = []string{"n"}; l.WireID = "x-{id}" },
			"status": func(l *table.Layout) {
				l.State = table.State{Status: "st", Pending: []string{"a", "b"}, Published: "c", Dead: "d", Attempts: "n"}
			},
			"deletes": func(l *table.Layout) {
				l.State = table.State{Status: "st", Pending: []string{"a"}, Failed: "f", Delete: true}
			},
			"published at": func(l *table.Layout) { l.State = table.State{PublishedAt: "at"} },
			"nothing":      func(l *table.Layout) { l.State = table.State{Delete: true} },
		}
		for what, change := range changed {
			for _, preset := range []string{p.Name, ""} {
				l := p.Layout
				change(&l)
				got, err := layoutOf(tableOf(l, preset))
				if err != nil || !reflect.DeepEqual(got, l) {
					t.Errorf("%s, %s, as %q: %v\n got %+v\nwant %+v", p.Name, what, preset, err, got, l)
				}
			}
		}
	}
}
