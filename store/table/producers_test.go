package table_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
)

// TestProducersAndRelaysDoNotWait has a producer's transaction stand open, in the server's own isolation, while a relay reads and
// settles, and a settlement and a purge stand still while producers go on.
func TestProducersAndRelaysDoNotWait(t *testing.T) {
	t.Parallel()
	places(t, table.Config{Retention: time.Hour, PurgeChunk: 10}, func(p *place) {
		p.write("k", 30)
		feed, shards := p.joined(time.Minute)
		slow := begin(p, p.Server, p.cfg)
		p.must(slow.Enqueue(t.Context(), postrider.Event("test.happened", postrider.Aggregate{Type: "test", ID: "k"}, "slow")))
		batches := p.read(feed, shards)
		if len(batches) != 1 || len(batches[0].Messages) != 30 {
			p.Fatalf("a relay got %s", payloads(batches))
		}
		first := batches[0]
		lost, err := feed.Settle(t.Context(), []feeds.Mark{{Shard: first.Shard, Batch: &first, Done: 20}})
		if err != nil || len(lost) > 0 {
			p.Fatalf("lost %v, and %v", lost, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		enqueue := func(while string) {
			t.Helper()
			for range 20 {
				tx := begin(p, p.Server, p.cfg)
				if err := tx.Enqueue(ctx, postrider.Event("test.happened", postrider.Aggregate{Type: "test", ID: "k"}, while)); err != nil {
					p.Fatalf("Enqueue during %s: %v", while, err)
				}
				p.must(tx.Commit())
			}
		}
		stand := func(what, status string, do func() error) {
			t.Helper()
			last := p.rows("SELECT max(id) FROM postrider_outbox WHERE status = '" + status + "'")[0]
			unlock := p.lockRows("SELECT id FROM postrider_outbox WHERE id = " + last)
			ended := make(chan error, 1)
			go func() { ended <- do() }()
			p.waits()
			enqueue(what)
			unlock()
			if err := <-ended; err != nil {
				p.Errorf("%s: %v", what, err)
			}
		}
		stand("a settlement", "pending", func() error {
			_, err := feed.Settle(ctx, done(&first))
			return err
		})
		ids := strings.Join(p.rows("SELECT id FROM postrider_outbox WHERE status = 'published'"), ", ")
		index := ""
		if p.Dialect == table.MySQL {
			index = "FORCE INDEX (PRIMARY)" // or it would wait itself
		}
		p.exec("UPDATE postrider_outbox " + index + " SET published_at = '2020-01-01 00:00:00', created_at = '2020-01-01 00:00:00' WHERE id IN (" + ids + ")")
		stand("a purge", "published", func() error {
			return p.store.Maintain(ctx)
		})
		p.must(slow.Commit())
		if got := p.rows("SELECT count(*) FROM postrider_outbox"); got[0] != "41" {
			p.Errorf("%s rows are left, want the 40 and the slow one", got)
		}
	})
}

// waits waits until somebody waits for a lock in this place. In MariaDB only administrators see locks: there it is a statement that
// takes long.
func (p *place) waits() {
	p.Helper()
	query := `SELECT count(*) FROM information_schema.processlist
		WHERE db = database() AND time >= 1 AND (info LIKE 'UPDATE%outbox%' OR info LIKE 'DELETE%outbox%')`
	if p.Dialect == table.PostgreSQL {
		query = `SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
			WHERE NOT l.granted AND a.query LIKE '%postrider_outbox%' AND a.datname = current_database()`
	}
	for until := time.Now().Add(20 * time.Second); p.rows(query)[0] == "0"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			p.Fatal("nobody waits for a lock")
		}
	}
}

// TestPurge deletes what is out of its retention, over rows that stay: those that wait, and those that are an operator's affair.
func TestPurge(t *testing.T) {
	t.Parallel()
	places(t, table.Config{Retention: time.Hour, PurgeChunk: 10}, func(p *place) {
		p.write("k", 100)
		first := p.rows("SELECT min(id) FROM postrider_outbox")[0]
		p.exec("UPDATE postrider_outbox SET status = 'dead' WHERE id < " + first + " + 25")
		p.exec("UPDATE postrider_outbox SET status = 'published', published_at = '2020-01-01 00:00:00' WHERE id >= " + first + " + 25 AND id < " + first +
			" + 95 AND id <> " + first + " + 50")
		p.exec("UPDATE postrider_outbox SET created_at = '2020-01-01 00:00:00'")
		p.must(p.store.Maintain(t.Context()))
		if got := p.rows("SELECT status FROM postrider_outbox ORDER BY id"); len(got) != 25+1+5 || got[25] != "pending" {
			p.Errorf("left are %v", got)
		}
		p.exec("UPDATE postrider_outbox SET status = 'published', published_at = " + p.now())
		p.must(p.store.Maintain(t.Context()))
		if got := p.rows("SELECT count(*) FROM postrider_outbox")[0]; got != "31" {
			p.Errorf("%s are left of what was delivered just now", got)
		}
	})
}

// TestPurgeBehindWaiting deletes what was delivered behind rows that stay: a paused feed, rows that no filter matches, messages for next
// year. It does so in as many calls as it needs, each of which goes on where the last one has ended.
func TestPurgeBehindWaiting(t *testing.T) {
	t.Parallel()
	places(t, table.Config{Retention: time.Hour, PurgeChunk: 5}, func(p *place) {
		p.write("k", 1500)
		first := p.rows("SELECT min(id) FROM postrider_outbox")[0]
		p.exec("UPDATE postrider_outbox SET created_at = '2020-01-01 00:00:00'")
		p.exec("UPDATE postrider_outbox SET status = 'published', published_at = " + p.now() + " WHERE id < " + first + " + 20") // sent again lately
		p.exec("UPDATE postrider_outbox SET status = 'scheduled' WHERE id >= " + first + " + 100 AND id < " + first + " + 1300")
		p.exec("UPDATE postrider_outbox SET status = 'published', published_at = '2020-01-01 00:00:00' WHERE id >= " + first + " + 1300")
		for range 4 {
			p.must(p.store.Maintain(t.Context()))
		}
		if got := p.rows("SELECT count(*) FROM postrider_outbox")[0]; got != "1300" {
			p.Errorf("%s rows are left, want the 1300 that were not delivered years ago", got)
		}
	})
}

// TestPurgeKeepsUp deletes what was delivered at 2,000 messages a second, behind a million rows that are scheduled. Relays call Maintain
// once a minute.
func TestPurgeKeepsUp(t *testing.T) {
	need.Long(t, "writes a million rows")
	places(t, table.Config{Retention: time.Hour}, func(p *place) {
		grow := func(status, publishedAt string, doublings int) {
			p.write("k", 1)
			p.exec("UPDATE postrider_outbox SET created_at = '2020-01-01 00:00:00', published_at = " + publishedAt + ", status = '" + status + "' WHERE status = 'pending'")
			for range doublings {
				p.exec("INSERT INTO postrider_outbox (status, type, aggregate_type, aggregate_id, payload, created_at, published_at) " +
					"SELECT status, type, aggregate_type, aggregate_id, payload, created_at, published_at FROM postrider_outbox WHERE status = '" + status + "'")
			}
		}
		grow("scheduled", "NULL", 20)
		grow("published", "'2020-01-01 00:00:00'", 19)
		deleted := "SELECT 1048576 + 524288 - count(*) FROM postrider_outbox"
		for calls, before := 1, 0; ; calls++ {
			begin := time.Now()
			p.must(p.store.Maintain(t.Context()))
			took := time.Since(begin)
			now, err := strconv.Atoi(p.rows(deleted)[0])
			p.must(err)
			p.Logf("call %d: %d rows in %s, %.0f/s", calls, now-before, took.Round(time.Millisecond), float64(now-before)/took.Seconds())
			if now == 1<<19 {
				return
			}
			if want := 2000 * 60; now-before < want && before > 0 {
				p.Fatalf("a call has deleted %d rows, want %d", now-before, want)
			}
			if before = now; calls > 40 {
				p.Fatal("it has not ended")
			}
		}
	})
}

func (p *place) now() string {
	if p.Dialect == table.MySQL {
		return "utc_timestamp(6)"
	}
	return "now()"
}

// TestDedupWindow: a key is unique for as long as it says, whatever the IDs.
func TestDedupWindow(t *testing.T) {
	t.Parallel()
	places(t, table.Config{DedupWindow: time.Hour}, func(p *place) {
		m := postrider.Event("test.happened", postrider.Aggregate{Type: "test", ID: "k"}, 1)
		m.DedupKey = "once"
		offer := func(want int) {
			t.Helper()
			tx := begin(p, p.Server, p.cfg)
			repeats, err := tx.Offer(t.Context(), m)
			p.must(err)
			p.must(tx.Commit())
			if len(repeats) != want {
				p.Errorf("left out %v, want %d", repeats, want)
			}
		}
		offer(0)
		offer(1) // the very same message
		p.exec("UPDATE postrider_dedup SET at = '2020-01-01 00:00:00'")
		offer(0)
		offer(1)
		p.exec("UPDATE postrider_dedup SET at = '2020-01-01 00:00:00'")
		p.must(p.store.Maintain(t.Context()))
		if got := p.rows("SELECT count(*) FROM postrider_dedup")[0]; got != "0" {
			p.Errorf("%s keys are left", got)
		}
	})
}

// TestDedupKeysDoNotMeet: in a table of a few keys, transactions with different ones do not wait for each other.
func TestDedupKeysDoNotMeet(t *testing.T) {
	t.Parallel()
	places(t, table.Config{}, func(p *place) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var open []*tx
		for _, key := range []string{"b", "c", "a"} {
			var some []postrider.Message
			for i := range 5 {
				m := postrider.Event("test.happened", postrider.Aggregate{Type: "test", ID: key}, i)
				m.DedupKey = key + strconv.Itoa(i)
				some = append(some, m)
			}
			one := begin(p, p.Server, p.cfg)
			if repeats, err := one.Offer(ctx, some...); err != nil || len(repeats) > 0 {
				p.Fatalf("keys %s beside %d transactions: left out %v, and %v", key, len(open), repeats, err)
			}
			open = append(open, one)
		}
		for _, one := range open {
			p.must(one.Commit())
		}
	})
}

// TestCanary puts one into each shard, once within the time.
func TestCanary(t *testing.T) {
	t.Parallel()
	places(t, table.Config{}, func(p *place) {
		feed, shards := p.joined(time.Minute)
		p.must(p.store.Canary(t.Context(), time.Minute))
		p.must(p.store.Canary(t.Context(), time.Minute))
		batches := p.read(feed, shards)
		if len(batches) != 8 || len(p.rows("SELECT id FROM postrider_outbox")) != 8 {
			p.Errorf("%d shards got one, want all 8", len(batches))
		}
		for _, b := range batches {
			if b.Messages[0].Type != feeds.CanaryType {
				p.Errorf("got %+v", b.Messages[0])
			}
		}
	})
}
