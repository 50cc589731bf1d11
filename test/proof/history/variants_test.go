package history_test

import (
	"context"
	"errors"
	"strings"
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

const lastValue = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM @.message_seq"

// The same, polled until a result is higher than the next one, each time with a delay between the
// server's access to the sequence's page and its reading of the value: so it reads while nextval is
// in progress, see stretch.
const lastValueAhead = `SELECT coalesce((
	SELECT v FROM (
	  SELECT v, lead(v) OVER () AS next FROM (
	    SELECT (` + lastValue + ` WHERE i > 0 AND pg_sleep(0.001) IS NOT NULL) AS v FROM generate_series(1, 25) i) s) t
	WHERE v > next LIMIT 1), 0)`

// TestWrongReadersAreCaught shows that the history test can fail: each of these ways to read the
// log loses or reorders messages, and is detected within the budget.
func TestWrongReadersAreCaught(t *testing.T) {
	for _, c := range []struct {
		variant
		budget int
		long   bool
	}{
		{variant{name: "floor known only in the same cycle", drawn: lastValue, sameCycle: true}, 60_000, false},
		{variant{name: "floor from SELECT last_value, directed", drawn: lastValueAhead, hasty: true}, 20_000, false},
		{variant{name: "floor from SELECT last_value", drawn: lastValue}, 3_000_000, true},
		{variant{name: "ordered by xid", order: "xid"}, 60_000, false},
		{variant{name: "cursor seq > last", positional: true}, 60_000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long {
				need.Long(t, "about a million messages")
			}
			pgtest.Newest(t, func(t *testing.T, dsn string) {
				verdict, messages := hunt(t, dsn, c.variant, c.budget)
				if verdict.Clean() {
					t.Fatalf("not caught in %d messages: %s", messages, verdict)
				}
				t.Logf("caught after %d messages: %s", messages, verdict)
			})
		})
	}
}

// TestRightReadersAreClean is the control: the correct reader passes. So does the reader of the
// directed hunt, with a function that waits until nextval is done.
func TestRightReadersAreClean(t *testing.T) {
	for _, c := range []struct {
		variant
		budget, long int
	}{
		{right, 15_000, 500_000},
		{variant{name: "directed", drawn: "SELECT coalesce(pg_sequence_last_value('@.message_seq'), 0)", hasty: true}, 3000, 50_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			pgtest.Newest(t, func(t *testing.T, dsn string) {
				budget := c.budget
				if need.IsLong() {
					budget = c.long
				}
				verdict, messages := hunt(t, dsn, c.variant, budget)
				if !verdict.Clean() || len(verdict.Duplicates) > 0 {
					t.Fatal(verdict)
				}
				t.Logf("%d messages: %s", messages, verdict)
			})
		})
	}
}

// hunt writes rounds of messages while a reader of the given kind reads, until the histories differ
// or the budget is used up. It returns the number of messages.
func hunt(t *testing.T, dsn string, v variant, budget int) (verdict history.Verdict, messages int) {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: shards})
	if err := history.Setup(t.Context(), pool, cfg, 200); err != nil {
		t.Fatal(err)
	}
	readers, deliveries := newReaders(t, pool, cfg.Schema, v)
	plan := history.Plan{Writers: 24, Keys: 200, Messages: 3000, Pause: 10 * time.Millisecond, Pauses: 0.3, Bulk: 4}
	if v.hasty { // slowly, so that a number seen too early is not assigned before it is used
		plan.Writers, plan.Messages = 4, 1000
	}
	for messages < budget {
		var written atomic.Bool
		var reading sync.WaitGroup
		for _, r := range readers {
			reading.Go(func() {
				if err := r.run(t.Context(), written.Load); err != nil {
					t.Error(err)
				}
			})
		}
		writers, err := history.Start(t.Context(), pool, cfg, plan)
		if err != nil {
			t.Fatal(err)
		}
		if v.hasty {
			reading.Go(func() {
				if err := stretch(t.Context(), pool, cfg.Schema, &written); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		written.Store(true)
		reading.Wait()
		if n := writers.Errors(); n > 0 || t.Failed() {
			t.Fatalf("%d transactions failed", n)
		}
		messages += int(writers.Enqueued())
		if verdict, err = history.Check(t.Context(), pool, cfg, deliveries()); err != nil {
			t.Fatal(err)
		}
		if !verdict.Clean() {
			break
		}
	}
	return verdict, messages
}

// stretch prolongs the time in which SELECT last_value shows a number that is not yet assigned.
// When nextval logs a group of 32 numbers, it keeps the last of them in the sequence's page until
// the record is in the WAL buffers: a fraction of a microsecond. But a switch to a new WAL file
// fills those buffers, and until they are on disk no session can add to them. The first switch
// makes the second begin with an empty file, which fills all of them.
//
// The numbers drawn here go to no message, like those of a transaction that is rolled back.
func stretch(ctx context.Context, pool *pgxpool.Pool, schema string, done *atomic.Bool) error {
	const drawGroup = "SELECT count(nextval('@.message_seq')) FROM generate_series(0, (SELECT log_cnt FROM @.message_seq))"
	for !done.Load() {
		if _, err := pool.Exec(ctx, "SELECT pg_switch_wal()"); err != nil {
			return err
		}
		switched := make(chan error, 1)
		go func() {
			_, err := pool.Exec(ctx, "SELECT pg_switch_wal()")
			switched <- err
		}()
		time.Sleep(3 * time.Millisecond)
		_, err := pool.Exec(ctx, strings.ReplaceAll(drawGroup, "@.", schema+"."))
		if err = errors.Join(err, <-switched); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return nil
}
