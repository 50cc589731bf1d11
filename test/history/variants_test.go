package history_test

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/history"
)

const lastValue = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM @.message_seq"

// The same, asked up to a hundred times, until the answer was higher than the one after it. Each time with a pause between
// the server's look at the page and its reading of the value there: see stretch.
const lastValueStretched = "SELECT coalesce((SELECT v FROM (SELECT v, lead(v) OVER () AS next FROM (SELECT (" + lastValue +
	" WHERE i > 0 AND pg_sleep(0.001) IS NOT NULL) AS v FROM generate_series(1, 100) i) s) t WHERE v > next LIMIT 1), 0)"

// TestWrongReadersAreCaught shows that the history test is able to fail: each of these ways to read the log loses or
// reorders messages, and is found out within the budget.
func TestWrongReadersAreCaught(t *testing.T) {
	for _, c := range []struct {
		variant
		budget int
		long   bool
	}{
		{variant{name: "floor known only in the same cycle", drawn: lastValue, sameCycle: true}, 60_000, false},
		{variant{name: "floor from SELECT last_value, directed", drawn: lastValueStretched, hasty: true}, 6_000, false},
		{variant{name: "floor from SELECT last_value", drawn: lastValue}, 3_000_000, true},
		{variant{name: "ordered by xid", order: "xid"}, 60_000, false},
		{variant{name: "cursor seq > last", positional: true}, 60_000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && os.Getenv("POSTRIDER_LONG") == "" {
				t.Skip("needs about a million messages: part of make check-long")
			}
			pgtest.Each(t, func(t *testing.T, dsn string) {
				verdict, messages := hunt(t, dsn, c.variant, c.budget)
				if verdict.Clean() {
					t.Fatalf("not caught in %d messages: %s", messages, verdict)
				}
				t.Logf("caught after %d messages: %s", messages, verdict)
			})
		})
	}
}

// TestRightReaderIsClean is the control: the same reader, by the rules, is not found at fault.
func TestRightReaderIsClean(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, dsn string) {
		budget := 15_000
		if os.Getenv("POSTRIDER_LONG") != "" {
			budget = 500_000
		}
		verdict, messages := hunt(t, dsn, right, budget)
		if !verdict.Clean() || len(verdict.Duplicates) > 0 {
			t.Fatal(verdict)
		}
		t.Logf("%d messages: %s", messages, verdict)
	})
}

// hunt writes rounds of messages while a reader of the given kind reads, until the histories differ or the budget is
// used up. It returns how many messages that took.
func hunt(t *testing.T, dsn string, v variant, budget int) (verdict history.Verdict, messages int) {
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: shards})
	if err := history.Setup(t.Context(), pool, cfg, 200); err != nil {
		t.Fatal(err)
	}
	readers, deliveries := newReaders(t, pool, cfg.Schema, v)
	plan := history.Plan{Writers: 24, Keys: 200, Messages: 3000, Pause: 10 * time.Millisecond, Pauses: 0.3, Bulk: 4}
	if v.hasty { // slowly, so that a number seen too early is not handed out before it is used
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
			reading.Go(func() { stretch(t, pool, cfg.Schema, &written) })
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

// stretch makes it last that SELECT last_value shows a number not yet handed out. When nextval logs a group of 32 numbers,
// it has the last of them in the sequence's page until that is in the WAL buffers, a fraction of a microsecond. But while
// the server switches to a new WAL file nobody can add to them, for some milliseconds: so let it log a group just then.
// Numbers that no message has are nothing unusual, a transaction that is rolled back leaves them too.
func stretch(t *testing.T, pool *pgxpool.Pool, schema string, done *atomic.Bool) {
	for !done.Load() {
		var both sync.WaitGroup
		for _, sql := range []string{
			"SELECT pg_switch_wal()",
			`SELECT count(nextval('@.message_seq')) FROM generate_series(0, (SELECT log_cnt FROM @.message_seq))
			 WHERE pg_sleep(random() * 0.0003) IS NOT NULL`,
		} {
			both.Go(func() {
				if _, err := pool.Exec(t.Context(), strings.ReplaceAll(sql, "@.", schema+".")); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		time.Sleep(50 * time.Millisecond) // time to draw the numbers that are left of the group
	}
}
