package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		migrator, err := postgres.NewMigrator(pool, cfg, postgres.Layout{})
		if err != nil {
			t.Fatal(err)
		}
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
		store, err := postgres.New(pool, cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Open(ctx, "f", postrider.Member{Lease: time.Second})
		if !errors.Is(err, postrider.ErrSchema) || !strings.Contains(err.Error(), "postrider migrate up") {
			t.Fatalf("Open without tables: %v", err)
		}
		if redone, err := migrator.Up(ctx); err != nil || len(redone) != postgres.SchemaVersion() {
			t.Fatalf("Up again applied %v, %v", redone, err)
		}
		status, err := migrator.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range status {
			if !m.Applied || m.AppliedAt.IsZero() {
				t.Errorf("status says %+v", m)
			}
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
		var wg sync.WaitGroup
		var mu sync.Mutex
		applied := 0
		for range 8 {
			wg.Go(func() {
				migrator, err := postgres.NewMigrator(pool, cfg, postgres.Layout{})
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

// TestPrintedScript holds that what "migrate print" prints is what the migrator does.
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
		migrator, err := postgres.NewMigrator(pool, cfg, postgres.Layout{})
		if err != nil {
			t.Fatal(err)
		}
		if done, err := migrator.Up(ctx); err != nil || len(done) != 0 {
			t.Fatalf("after the script, Up applied %v, %v", done, err)
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
