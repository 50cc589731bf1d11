package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		db := must(postgres.Open(pool, cfg))(t)
		migrator := must(db.Migrator(postgres.Layout{}))(t)
		if again, err := migrator.Up(ctx); err != nil || len(again) != 0 {
			t.Fatalf("second Up applied %v, %v", again, err)
		}
		undone, err := migrator.Down(ctx, 0)
		if err != nil || len(undone) != postgres.SchemaVersion() {
			t.Fatalf("Down undid %v, %v", undone, err)
		}
		var left int
		err = pool.QueryRow(ctx, `SELECT count(*) FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind <> 'i'
			UNION ALL SELECT count(*) FROM pg_proc WHERE pronamespace = $1::text::regnamespace ORDER BY 1 DESC LIMIT 1`,
			cfg.Schema).Scan(&left)
		if err != nil || left != 1 { // the table of versions
			t.Fatalf("%d objects left, %v", left, err)
		}
		_, err = db.Feeds().Open(ctx, "f", feeds.Member{Lease: time.Second})
		if !errors.Is(err, feeds.ErrSchema) || !strings.Contains(err.Error(), "postrider migrate up") {
			t.Fatalf("Open without tables: %v", err)
		}
		if redone, err := migrator.Up(ctx); err != nil || len(redone) != postgres.SchemaVersion() {
			t.Fatalf("Up again applied %v, %v", redone, err)
		}
		state, err := migrator.State(ctx)
		if err != nil || !state.Current() || !state.Functions.Same {
			t.Fatalf("state is %+v, %v", state, err)
		}
		for _, m := range state.Migrations {
			if !m.Applied || m.AppliedAt.IsZero() {
				t.Errorf("state says %+v", m)
			}
		}
	})
}

// TestMigrateAfterALook verifies that a session which has found no schema, and then waits for
// another migrator, does not create the schema again.
func TestMigrateAfterALook(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		cfg := postgres.Config{Schema: "t_migrate_after_look"}
		first, second := pgtest.OwnPool(t, dsn), pgtest.OwnPool(t, dsn)
		pgtest.Drop(t, first, cfg.Schema)
		t.Cleanup(func() { pgtest.Drop(t, first, cfg.Schema) })
		lock, err := first.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lock.Rollback(ctx) }()
		_, err = lock.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('postrider migrator of t_migrate_after_look', 0))")
		if err != nil {
			t.Fatal(err)
		}
		migrator := must(must(postgres.Open(second, cfg))(t).Migrator(postgres.Layout{}))(t)
		for _, sql := range []string{"CREATE SCHEMA t_migrate_after_look", "DROP SCHEMA t_migrate_after_look", "SELECT to_regclass('t_migrate_after_look.x')"} {
			if _, err := second.Exec(ctx, sql); err != nil { // fills its caches, which say that there is no such schema
				t.Fatal(err)
			}
		}
		ended := make(chan error, 1)
		go func() {
			_, err := migrator.Up(ctx)
			ended <- err
		}()
		for waits := false; !waits; {
			err := first.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks w JOIN pg_locks h USING (locktype, database, classid, objid, objsubid)
				WHERE w.locktype = 'advisory' AND NOT w.granted AND h.granted AND h.pid = $1)`, lock.Conn().PgConn().PID()).Scan(&waits)
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := lock.Exec(ctx, "CREATE SCHEMA t_migrate_after_look"); err != nil {
			t.Fatal(err)
		}
		if err := lock.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestMigrateByManyAtOnce(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		pool := pgtest.Pool(t, dsn)
		cfg := postgres.Config{Schema: "t_migrate_by_many"}
		pgtest.Drop(t, pool, cfg.Schema)
		t.Cleanup(func() { pgtest.Drop(t, pool, cfg.Schema) })
		db := must(postgres.Open(pool, cfg))(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		applied := 0
		for range 8 {
			wg.Go(func() {
				migrator, err := db.Migrator(postgres.Layout{})
				if err != nil {
					t.Error(err)
					return
				}
				done, err := migrator.Up(t.Context())
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				applied += len(done)
				mu.Unlock()
			})
		}
		wg.Wait()
		if applied != postgres.SchemaVersion() {
			t.Errorf("%d migrations applied, want each of %d once", applied, postgres.SchemaVersion())
		}
	})
}

// TestPrintedScript verifies that "migrate print" prints what the migrator does.
func TestPrintedScript(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		pool := pgtest.Pool(t, dsn)
		cfg := postgres.Config{Schema: "t_printed"}
		pgtest.Drop(t, pool, cfg.Schema)
		t.Cleanup(func() { pgtest.Drop(t, pool, cfg.Schema) })
		script, err := postgres.NewScript(cfg, postgres.Layout{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(ctx, script.All(), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		migrator := must(must(postgres.Open(pool, cfg))(t).Migrator(postgres.Layout{}))(t)
		if done, err := migrator.Up(ctx); err != nil || len(done) != 0 {
			t.Fatalf("after the script, Up applied %v, %v", done, err)
		}
	})
}

// TestFunctionsAreReplaced verifies that Up restores every function, keeps rights and layout, and
// does not touch the functions of a newer program.
func TestFunctionsAreReplaced(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{Slots: 5, Period: time.Minute, DedupWindow: time.Hour, InboxWindow: 70 * time.Second})
		migrator := must(must(postgres.Open(pool, cfg))(t).Migrator(postgres.Layout{}))(t)
		exec := func(sql string) {
			t.Helper()
			if _, err := pool.Exec(ctx, strings.ReplaceAll(sql, "@schema@", cfg.Schema)); err != nil {
				t.Fatal(err)
			}
		}
		up := func() *postgres.State {
			t.Helper()
			if done, err := migrator.Up(ctx); err != nil || len(done) != 0 {
				t.Fatalf("Up applied %v, %v", done, err)
			}
			state, err := migrator.State(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		const look = `SELECT concat_ws(' ', @schema@.slot_count(), @schema@.slot_period(), @schema@.dedup_window(), @schema@.inbox_window(),
			has_function_privilege('public', '@schema@.heard(text, text)', 'EXECUTE'),
			has_function_privilege('public', '@schema@.reclaim(bigint)', 'EXECUTE'),
			has_function_privilege('public', '@schema@.enqueue', 'EXECUTE'))`
		ask := func() (found string) {
			t.Helper()
			sql := strings.Replace(strings.ReplaceAll(look, "@schema@", cfg.Schema), "'"+cfg.Schema+".enqueue'",
				"(SELECT oid FROM pg_proc WHERE proname = 'enqueue' AND pronamespace = '"+cfg.Schema+"'::regnamespace)", 1)
			if err := pool.QueryRow(ctx, sql).Scan(&found); err != nil {
				t.Fatal(err)
			}
			return found
		}
		exec("GRANT EXECUTE ON FUNCTION @schema@.reclaim(bigint) TO pg_monitor; REVOKE ALL ON FUNCTION @schema@.lock_keys(text[]) FROM PUBLIC")
		before := ask()
		exec("CREATE OR REPLACE FUNCTION @schema@.lock_keys(VARIADIC keys text[]) RETURNS void LANGUAGE sql AS 'SELECT 1/0'")
		exec("CREATE OR REPLACE FUNCTION @schema@.functions_version(OUT version integer, OUT digest text) LANGUAGE sql AS $$ SELECT 0, 'old' $$")
		if state, err := migrator.State(ctx); err != nil || state.Current() {
			t.Errorf("with other functions the state is %+v, %v", state, err)
		}
		if state := up(); !state.Current() || !state.Functions.Same {
			t.Errorf("after Up the state is %+v", state)
		}
		exec("SELECT @schema@.lock_keys('a')")
		if after := ask(); after != before {
			t.Errorf("Up has changed %s to %s", before, after)
		}
		var kept bool
		err := pool.QueryRow(ctx, strings.ReplaceAll(`SELECT has_function_privilege('pg_monitor', '@schema@.reclaim(bigint)', 'EXECUTE')
			AND NOT has_function_privilege('public', '@schema@.lock_keys(text[])', 'EXECUTE')`, "@schema@", cfg.Schema)).Scan(&kept)
		if err != nil || !kept {
			t.Errorf("Up has changed rights that somebody gave or took: %v", err)
		}

		exec("CREATE OR REPLACE FUNCTION @schema@.lock_keys(VARIADIC keys text[]) RETURNS void LANGUAGE sql AS 'SELECT 1/0'")
		exec("CREATE OR REPLACE FUNCTION @schema@.functions_version(OUT version integer, OUT digest text) LANGUAGE sql AS $$ SELECT 1000, 'new' $$")
		if state := up(); !state.Current() || !state.Functions.Newer {
			t.Errorf("with functions of a newer program the state is %+v", state)
		}
		if _, err := pool.Exec(ctx, "SELECT "+cfg.Schema+".lock_keys('a')"); err == nil {
			t.Error("an older program has replaced the functions of a newer one")
		}
	})
}

// TestFunctionsAreReplacedAtWork replaces the functions repeatedly while producers and a relay call
// them.
func TestFunctionsAreReplacedAtWork(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 1})
		db := must(postgres.Open(pool, cfg))(t)
		feed, err := db.Feeds().Open(ctx, "f", feeds.Member{Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := feed.Balance(ctx); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var over atomic.Bool
		var sent atomic.Int64
		for range 2 {
			wg.Go(func() {
				for !over.Load() {
					if _, err := pool.Exec(ctx, "SELECT "+cfg.Schema+".enqueue('x', 'order', '1', '{}')"); err != nil {
						t.Error(err)
						return
					}
					sent.Add(1)
				}
			})
		}
		wg.Go(func() {
			for range 20 {
				migrator, err := db.Migrator(postgres.Layout{})
				if err == nil {
					_, err = migrator.Up(ctx)
				}
				if err != nil {
					t.Error(err)
				}
			}
			over.Store(true)
		})
		written := make(chan struct{})
		go func() {
			wg.Wait()
			close(written)
		}()
		var read int64
		for idle := 0; idle < 3; {
			batches, err := feed.Read(ctx, []feeds.Demand{{Shard: 0, Limit: 100}})
			if err != nil {
				t.Fatal(err)
			}
			if len(batches) == 0 || len(batches[0].Messages) == 0 {
				select {
				case <-written:
					idle++
				default:
				}
				continue
			}
			read += int64(len(batches[0].Messages))
			if _, err := feed.Settle(ctx, []feeds.Mark{{Shard: 0, Batch: &batches[0], Done: len(batches[0].Messages)}}); err != nil {
				t.Fatal(err)
			}
		}
		if read != sent.Load() || read == 0 {
			t.Errorf("%d messages were read, %d were written", read, sent.Load())
		}
	})
}

// TestVersionsBesideEachOther verifies that a program works with newer tables that only add
// something, and refuses others.
func TestVersionsBesideEachOther(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		db := must(postgres.Open(pool, cfg))(t)
		migrator, store := must(db.Migrator(postgres.Layout{}))(t), db.Feeds()
		next, known := postgres.SchemaVersion()+1, postgres.SchemaVersion()
		if _, err := pool.Exec(ctx, "INSERT INTO "+cfg.Schema+".migrations (version, needs) VALUES ($1, $2)", next, known); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Open(ctx, "f", feeds.Member{Lease: time.Second}); err != nil {
			t.Errorf("with newer tables that only add something: %v", err)
		}
		if done, err := migrator.Up(ctx); err != nil || len(done) != 0 {
			t.Errorf("Up applied %v, %v", done, err)
		}
		if state, err := migrator.State(ctx); err != nil || !state.Current() || state.Version() != next || state.Needs != known {
			t.Errorf("state is %+v, %v", state, err)
		}
		if _, err := migrator.Down(ctx, 0); !errors.Is(err, feeds.ErrSchema) || !strings.Contains(err.Error(), "newer program") {
			t.Errorf("Down of what it does not know: %v", err)
		}
		if _, err := pool.Exec(ctx, "UPDATE "+cfg.Schema+".migrations SET needs = version"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Open(ctx, "f", feeds.Member{Lease: time.Second}); !errors.Is(err, feeds.ErrSchema) || !strings.Contains(err.Error(), "newer program") {
			t.Errorf("with tables that it does not know: %v", err)
		}
	})
}

func TestSchemaNames(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"1x", "Upper", "a-b", `a"b`, "a b", "pg_x", strings.Repeat("x", 49)} {
		if _, err := postgres.NewScript(postgres.Config{Schema: bad}, postgres.Layout{}); err == nil {
			t.Errorf("schema %q was accepted", bad)
		}
	}
	for _, good := range []string{"", "postrider", "user", "_x1"} { // user is a reserved word
		if _, err := postgres.NewScript(postgres.Config{Schema: good}, postgres.Layout{}); err != nil {
			t.Error(err)
		}
	}
	_, err := postgres.NewScript(postgres.Config{}, postgres.Layout{Shards: -1, Slots: 2, Period: time.Millisecond})
	for _, part := range []string{"Shards", "Slots", "Period"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
}
