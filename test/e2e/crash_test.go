package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

// TestServerCrash repeatedly kills all processes of a server under load. Nothing committed is lost,
// and the relays continue by themselves soon after the server is back, however long it was down.
func TestServerCrash(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	versions := []string{"18"}
	if need.IsLong() {
		versions = append(versions, "15")
	}
	for _, version := range versions {
		t.Run("pg"+version, func(t *testing.T) {
			t.Parallel()
			testServerCrash(t, "postgres"+version+"@e2e", pgtest.Env(t, "POSTRIDER_TEST_POSTGRES"+version+"_E2E"))
		})
	}
}

func testServerCrash(t *testing.T, server, dsn string) {
	crashes := 3
	if need.IsLong() {
		crashes = 20
	}
	const resumeWithin = 5 * time.Second
	s := newScene(t, dsn, postgres.Layout{})
	t.Cleanup(func() { s.recover(server) }) // the schema is dropped next
	s.mustSyncToDisk()
	keys := s.keyOfEachShard()
	arrivals := s.follow(s.log)
	relays := s.relays(fleet.Config{Slow: 3 * time.Millisecond}, 2)
	writers := s.write(history.Plan{Writers: 8, Keys: 200, Pause: 5 * time.Millisecond, Pauses: 0.3, Bulk: 6})

	var resumed []time.Duration
	for i := range crashes {
		before := arrivals.count()
		if _, ok := s.eventually(20*time.Second, func() bool { return arrivals.count() > before+500 }); !ok {
			t.Fatalf("crash %d: no load", i)
		}
		s.services("kill", server)
		if i%4 == 1 { // until leases have expired and backoff is at its maximum
			s.wait(11 * time.Second)
		}
		back := s.recover(server)
		var markers []postrider.ID
		s.tryEventually(func() (err error) {
			markers, err = s.commit(keys...)
			return err
		})
		s.eventually(30*time.Second, func() bool { return arrivals.have(markers...) })
		took := time.Since(back).Round(10 * time.Millisecond)
		resumed = append(resumed, took)
		if took > resumeWithin {
			t.Errorf("crash %d: all shards were delivered again only %s after the server was back", i, took)
		}
	}
	s.awaitOwners(2)
	writers.Stop()
	verdict := s.settle(30 * time.Second)
	relays.StopAll()
	t.Logf("%d crashes, %d transactions failed; all shards resumed after %s, at most %s: %s",
		crashes, writers.Errors(), resumed, slices.Max(resumed), verdict)
	if !verdict.Clean() {
		t.Error("the histories differ")
	}
}

// recover starts a killed server and resolves prepared transactions. It returns the time since
// which the server is back.
func (s *scene) recover(server string) (back time.Time) {
	s.t.Helper()
	s.services("start", server)
	back = time.Now()
	s.pool.Reset()  // drops old connections
	for range 100 { // each attempt may find a dead connection
		if s.decidePrepared(context.WithoutCancel(s.t.Context())) == nil {
			break
		}
	}
	return back
}

// services calls the script that started the server.
func (s *scene) services(args ...string) {
	s.t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(s.t.Context()), pgtest.Env(s.t, "POSTRIDER_SERVICES"), args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("services %v: %v\n%s", args, err, out)
	}
}

func (s *scene) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
}

func (s *scene) mustSyncToDisk() {
	s.t.Helper()
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := s.pool.QueryRow(s.t.Context(), "SHOW "+setting).Scan(&value); err != nil || value != "on" {
			s.t.Fatalf("%s is %s, %v: the test would show nothing", setting, value, err)
		}
	}
}

// decidePrepared commits or rolls back the prepared transactions that a crash has left behind, as a
// transaction manager would: they have survived it, with their locks, but their writers are gone.
func (s *scene) decidePrepared(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, `SELECT gid FROM pg_prepared_xacts
		WHERE database = current_database() AND prepared < pg_postmaster_start_time()`, pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		end := []string{"COMMIT", "ROLLBACK"}[rand.IntN(2)]
		if _, err := s.pool.Exec(ctx, fmt.Sprintf("%s PREPARED '%s'", end, name), pgx.QueryExecModeExec); err != nil {
			return err
		}
	}
	return err
}
