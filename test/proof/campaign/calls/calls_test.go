package calls_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/campaign/calls"
	"github.com/postrider/postrider/test/proof/campaign/record"
)

// TestCalls checks that calls of all kinds are made, that each takes effect once while connections
// are cut all the time, and that the record shows it.
func TestCalls(t *testing.T) {
	dsn := pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	pool := pgtest.Pool(t, dsn)
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	migrator, err := db.Migrator(postgres.Layout{})
	if err == nil {
		_, err = migrator.Up(t.Context())
	}
	if err == nil {
		err = calls.Prepare(t.Context(), pool)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	servers := []string{port.For(t), port.For(t)}
	for i, address := range servers {
		s := calls.Settings{Name: "caller" + string(rune('1'+i)), DSN: dsn, Dir: dir, Address: address, Servers: servers, Rate: 20}
		running.Go(func() {
			if err := calls.Run(ctx, s); err != nil {
				t.Error(err)
			}
		})
	}
	const each = 20
	for enough, cut := false, time.Now(); !enough; {
		time.Sleep(20 * time.Millisecond)
		enough = count(t, pool, "SELECT min(n) FROM (SELECT count(*) AS n FROM campaign.operations GROUP BY kind) k HAVING count(*) = 3") >= each
		if time.Since(cut) > 200*time.Millisecond {
			cut = time.Now()
			count(t, pool, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL`)
		}
	}
	stop()
	running.Wait()

	w, err := record.Create(dir)
	if err == nil {
		err = calls.Dump(t.Context(), pool, dir, w)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	acked := make(map[string]int)
	for o, err := range r.Operations() {
		if err != nil {
			t.Fatal(err)
		}
		if o.Count > 1 || o.Acked && o.Count == 0 {
			t.Errorf("%+v", o)
		}
		if o.Acked {
			acked[o.Kind]++
		}
	}
	t.Log(acked)
	for _, kind := range []string{"commit", "handle", "complete"} {
		if acked[kind] < each/2 {
			t.Errorf("%d calls of kind %s were answered", acked[kind], kind)
		}
	}
}

func count(t *testing.T, pool *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, pgx.QueryExecModeExec).Scan(&n); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return n
}
