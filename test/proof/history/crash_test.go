package history_test

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/history"
)

// TestCursorKeptOverCrashIsCaught tests another wrong reader. If commits do not wait for the disk,
// a crashed server has lost the last of them, and assigns their transaction IDs and sequence
// numbers again. A cursor that has passed them treats the messages that have them now as already
// read.
func TestCursorKeptOverCrashIsCaught(t *testing.T) {
	eachCrash(t, func(t *testing.T, server, dsn string) {
		v := variant{name: "cursor kept over a crash", keepsCursor: true}
		verdict, messages, crashes := huntCrashes(t, server, dsn, v, 10)
		if len(verdict.Lost) == 0 {
			t.Fatalf("not caught in %d messages and %d crashes: %s", messages, crashes, verdict)
		}
		t.Logf("caught after %d messages and %d crashes: %s", messages, crashes, verdict)
	})
}

// TestStoredCursorSurvivesCrash is its control: the same reader returns to the cursor that it finds
// in the database. That causes duplicates, but loses nothing that the server still has.
func TestStoredCursorSurvivesCrash(t *testing.T) {
	eachCrash(t, func(t *testing.T, server, dsn string) {
		most := 3
		if need.IsLong() {
			most = 30
		}
		verdict, messages, crashes := huntCrashes(t, server, dsn, right, most)
		if len(verdict.Lost)+len(verdict.Inverted) > 0 {
			t.Fatal(verdict)
		}
		t.Logf("%d messages and %d crashes: %s", messages, crashes, verdict)
	})
}

// huntCrashes crashes the server while messages are written and read, until some are lost or the
// limit is reached. It returns the number of messages and crashes. Phantoms are no violation here:
// they were committed when they were read.
func huntCrashes(t *testing.T, server, dsn string, v variant, most int) (verdict history.Verdict, messages, crashes int) {
	t.Helper()
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: shards})
	if err := history.Setup(t.Context(), pool, cfg, 200); err != nil {
		t.Fatal(err)
	}
	readers, deliveries := newReaders(t, pool, cfg.Schema, v)
	plan := history.Plan{Writers: 16, Keys: 200, Pause: 10 * time.Millisecond, Pauses: 0.3, Bulk: 4, Async: true}
	for _, shape := range history.AllShapes {
		if shape != history.Prepared { // syncs all earlier commits; and would remain after the crash, with its locks
			plan.Shapes = append(plan.Shapes, shape)
		}
	}
	for len(verdict.Lost) == 0 && crashes < most {
		crashes++
		func() { // so that no reader or writer is left, however it ends
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			var written atomic.Bool
			var reading sync.WaitGroup
			defer reading.Wait()
			defer cancel()
			for _, r := range readers {
				reading.Go(func() {
					if err := r.survive(ctx, written.Load); err != nil {
						t.Error(err)
					}
				})
			}
			writers, err := history.Start(ctx, pool, cfg, plan)
			if err != nil {
				t.Fatal(err)
			}
			defer writers.Stop()
			time.Sleep(300*time.Millisecond + rand.N(300*time.Millisecond))
			crash(t, server, pool)
			time.Sleep(500 * time.Millisecond)
			writers.Stop()
			written.Store(true)
			reading.Wait()
			messages += int(writers.Enqueued())
		}()
		if t.Failed() {
			t.FailNow()
		}
		var err error
		if verdict, err = history.Check(t.Context(), pool, cfg, deliveries()); err != nil {
			t.Fatal(err)
		}
	}
	return verdict, messages, crashes
}

// crash kills the server and restarts it. It first suspends the server's WAL writer for a moment:
// otherwise only the last milliseconds of commits are unsynced, since up to version 15 the WAL
// writer writes each full page.
func crash(t *testing.T, server string, pool *pgxpool.Pool) {
	t.Helper()
	var writer string
	err := pool.QueryRow(t.Context(), "SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'walwriter'").Scan(&writer)
	if err != nil {
		t.Fatal(err)
	}
	command(t, "kill", "-STOP", writer)
	time.Sleep(rand.N(300 * time.Millisecond))
	command(t, pgtest.Env(t, "POSTRIDER_SERVICES"), "kill", server)
	command(t, pgtest.Env(t, "POSTRIDER_SERVICES"), "start", server)
	pool.Reset() // drops old connections
}

// survive is run for a server that may crash.
func (r *reader) survive(ctx context.Context, idle func() bool) error {
	err := r.run(ctx, idle)
	for err != nil {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
		if !r.keepsCursor {
			if err = r.restore(ctx); err != nil {
				continue
			}
		}
		err = r.run(ctx, idle)
	}
	return nil
}

// eachCrash runs f for every server that may be killed; outside the long tier for the newest one.
func eachCrash(t *testing.T, f func(t *testing.T, server, dsn string)) {
	t.Helper()
	versions := []string{"18"}
	if need.IsLong() {
		versions = append(versions, "15")
	}
	for _, version := range versions {
		t.Run("pg"+version, func(t *testing.T) {
			f(t, "postgres"+version+"@crash", pgtest.Env(t, "POSTRIDER_TEST_POSTGRES"+version+"_CRASH"))
		})
	}
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
