package history_test

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/history"
)

const lastValue = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM @.message_seq"

// The same, asked until it shows what the server has not handed out: for a moment, while it logs a group of numbers.
const lastValueAhead = `SELECT coalesce((
	SELECT s.v FROM generate_series(1, 5000) i
	CROSS JOIN LATERAL (SELECT last_value AS v FROM @.message_seq WHERE i > 0) s
	CROSS JOIN LATERAL (SELECT pg_sequence_last_value('@.message_seq') AS true_v WHERE s.v > 0) t
	WHERE s.v > t.true_v + 8 LIMIT 1), 0)`

// TestWrongReadersAreCaught shows that the history test is able to fail: each of these ways to read the log loses or
// reorders messages, and is found out within the budget.
func TestWrongReadersAreCaught(t *testing.T) {
	for _, c := range []struct {
		variant
		budget int
		long   bool
	}{
		{variant{name: "floor known only in the same cycle", drawn: lastValue, sameCycle: true}, 60_000, false},
		{variant{name: "floor from SELECT last_value, directed", drawn: lastValueAhead, hasty: true}, 60_000, false},
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
	const shards = 4
	pool := pgtest.Pool(t, dsn)
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: shards})
	if err := history.Setup(t.Context(), pool, cfg, 200); err != nil {
		t.Fatal(err)
	}
	readers, deliveries := readAll(t, pool, cfg.Schema, shards, v)
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
