package cli

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if d.More() {
		t.Fatalf("more than one object in %q", text)
	}
	return v
}

func TestMigrateRoundTrip(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		c := newCLI(t, dsn)
		up := decode[migration](t, c.must("migrate", "up", "--shards", "3", "--json"))
		if up.Version != postgres.SchemaVersion() || up.Schema != c.schema {
			t.Errorf("after up: %+v", up)
		}
		again := c.run("migrate", "up", "--shards", "5")
		if again.code != exitOK || !strings.Contains(again.err, "with 3 shards for a new feed and 8 slots, and keeps them") {
			t.Errorf("up again: %+v", again)
		}
		if status := c.must("migrate", "status"); strings.Count(status, "\n") != 2+postgres.SchemaVersion() ||
			strings.Contains(status, " no") {
			t.Errorf("status:\n%s", status)
		}

		c.enqueue(3)
		plan := decode[undoing](t, c.must("migrate", "down", "--to", "0", "--dry-run", "--json"))
		if want := (undoing{c.schema, postgres.SchemaVersion(), 0, 3, 3, false}); plan != want {
			t.Errorf("plan %+v, want %+v", plan, want)
		}
		if r := c.run("migrate", "down", "--to", "0"); r.code != exitUsage || !strings.Contains(r.err, "--yes") {
			t.Errorf("in a script: %+v", r)
		}
		done := decode[undoing](t, c.must("migrate", "down", "--to", "0", "--yes", "--json"))
		if !done.Done || done.Messages != 3 {
			t.Errorf("down: %+v", done)
		}
		r := c.run("migrate", "status", "--json")
		if status := decode[migration](t, r.out); r.code != exitSchema || status.Version != 0 {
			t.Errorf("status after down: %+v", r)
		}
	})
}

func TestMigrateDownAsks(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	c.answer = "n\n"
	if r := c.run("migrate", "down", "--to", "0"); r.code != exitFailure || !strings.Contains(r.err, "removing 0 messages") {
		t.Errorf("after no: %+v", r)
	}
	c.must("migrate", "status")
	c.answer = "y\n"
	c.must("migrate", "down", "--to", "0")
	if r := c.run("migrate", "status", "--json"); decode[migration](t, r.out).Version != 0 {
		t.Errorf("after yes: %+v", r)
	}
}

// TestMigrateDownCountsDelivered holds that what all feeds have delivered does not count as undelivered.
func TestMigrateDownCountsDelivered(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up", "--shards", "1")
	c.enqueue(5)
	feed, err := c.database().Feeds().Open(t.Context(), "f", feeds.Member{Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Balance(t.Context()); err != nil {
		t.Fatal(err)
	}
	batches, err := feed.Read(t.Context(), []feeds.Demand{{Shard: 0, Limit: 100}})
	if err != nil || len(batches) != 1 {
		t.Fatal(batches, err)
	}
	if _, err := feed.Settle(t.Context(), []feeds.Mark{{Shard: 0, Batch: &batches[0], Done: 2}}); err != nil {
		t.Fatal(err)
	}
	plan := decode[undoing](t, c.must("migrate", "down", "--to", "0", "--dry-run", "--json"))
	if plan.Messages != 5 || plan.Undelivered != 3 {
		t.Errorf("plan %+v, want 3 of 5 undelivered", plan)
	}
}

func TestMigratePrint(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	sql := c.must("migrate", "print", "--shards", "2")
	if _, err := c.pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	c.must("migrate", "status")

	whole := decode[printed](t, c.must("migrate", "print", "--roles", "--json"))
	if !strings.Contains(whole.SQL, "CREATE ROLE") || whole.To != postgres.SchemaVersion() {
		t.Errorf("printed %+v", whole)
	}
	// Functions can be created again at any time: what follows the newest version is these alone.
	sql = c.must("migrate", "print", "--from", strconv.Itoa(postgres.SchemaVersion()))
	if strings.Contains(sql, "CREATE SCHEMA") || strings.Contains(sql, "CREATE TABLE ") {
		t.Error("an upgrade from the newest version creates tables")
	}
	c.exec("DROP FUNCTION @schema@.lock_keys(text[]), @schema@.functions_version()")
	if r := c.run("migrate", "status"); r.code != exitSchema || !strings.Contains(r.err, "does not have the functions of this program") {
		t.Errorf("without functions: %+v", r)
	}
	if _, err := c.pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	c.must("migrate", "status")
}

func TestMigrateRoles(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	pgtest.DropRoles(t, c.pool, c.schema)
	c.must("migrate", "up", "--roles")
	var mayInsert, mayDelete bool
	err := c.pool.QueryRow(t.Context(), "SELECT has_column_privilege($1, $2, 'payload', 'INSERT'), has_table_privilege($1, $2, 'DELETE')",
		c.schema+"_producer", c.schema+".messages").Scan(&mayInsert, &mayDelete)
	if err != nil || !mayInsert || mayDelete {
		t.Errorf("a producer may insert: %v, delete: %v, %v", mayInsert, mayDelete, err)
	}
}
