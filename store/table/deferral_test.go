package table_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// bakery is an outbox as services write it themselves: with words in capitals, a claim, and columns of their own size.
var bakery = table.Layout{
	Table: "bakery_outbox", ID: "id", OrderBy: []string{"created_at", "id"},
	Columns: table.Columns{Type: "type", AggregateID: "aggregate_id", Payload: "payload", CreatedAt: "created_at"},
	State: table.State{
		Status: "status", Pending: []string{"NEW"}, Processing: "PUBLISHING", Published: "SENT", Failed: "FAILED", Dead: "DEAD",
		Attempts: "attempts", NextAttempt: "retry_after", LastError: "last_error", PublishedAt: "sent_at", UpdatedAt: "updated_at",
	},
}

// columnsOf has the types of both dialects: MySQL's first.
func columnsOf(d table.Dialect, tableName string) string {
	types := []string{"{uuid}", "char(36)", "uuid", "{time}", "datetime(6)", "timestamptz", "{json}", "json", "jsonb", "{large}", "mediumtext", "text"}
	for i := 0; i < len(types); i += 3 {
		if d == table.PostgreSQL {
			tableName = strings.ReplaceAll(tableName, types[i], types[i+2])
		} else {
			tableName = strings.ReplaceAll(tableName, types[i], types[i+1])
		}
	}
	return tableName
}

const bakeryTable = `CREATE TABLE bakery_outbox (
	id {uuid} PRIMARY KEY, aggregate_id varchar(64) NOT NULL, type varchar(64) NOT NULL, payload {json} NOT NULL,
	status varchar(16) NOT NULL DEFAULT 'NEW', attempts smallint NOT NULL DEFAULT 0, retry_after {time} NULL, last_error varchar(12) NULL,
	created_at {time} NOT NULL DEFAULT CURRENT_TIMESTAMP(6), sent_at {time} NULL, updated_at {time} NULL)`

// adopted is a table that was there before, and its only relay.
type adopted struct {
	*testing.T
	tabletest.Server
	store  feeds.Store
	feed   feeds.Feed
	shards []int
}

func adoptAs(t *testing.T, s tabletest.Server, tableName string, layout table.Layout) *adopted {
	t.Helper()
	a := &adopted{T: t, Server: s}
	a.exec(columnsOf(s.Dialect, tableName))
	tabletest.Migrate(t, s, table.Config{Layout: layout})
	db, err := table.Open(s.DB, table.Config{Dialect: s.Dialect, Layout: layout, Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	a.store = db.Feeds()
	a.join()
	return a
}

func (a *adopted) exec(statement string) {
	a.Helper()
	if _, err := a.DB.ExecContext(a.Context(), statement); err != nil {
		a.Fatalf("%s: %v", statement, err)
	}
}

// join takes all shards, after the member before has given them up.
func (a *adopted) join() {
	a.Helper()
	if a.feed != nil {
		var marks []feeds.Mark
		for _, s := range a.shards {
			marks = append(marks, feeds.Mark{Shard: s})
		}
		a.must(a.feed.Release(a.Context(), marks))
		a.must(a.feed.Close(a.Context()))
	}
	feed, err := a.store.Open(a.Context(), "bakery", feeds.Member{Name: "relay", Lease: time.Minute})
	a.must(err)
	a.Cleanup(func() { _ = feed.Close(context.WithoutCancel(a.Context())) })
	share, err := feed.Balance(a.Context())
	a.must(err)
	if len(share.Shards) != 2 {
		a.Fatalf("the only member holds %v", share.Shards)
	}
	a.feed, a.shards = feed, share.Shards
}

func (a *adopted) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// read returns what there is to read, of all shards.
func (a *adopted) read() []feeds.Batch {
	a.Helper()
	var want []feeds.Demand
	for _, s := range a.shards {
		want = append(want, feeds.Demand{Shard: s, Limit: 100})
	}
	batches, err := a.feed.Read(a.Context(), want)
	a.must(err)
	return batches
}

func (a *adopted) due() []feeds.Deferred {
	a.Helper()
	due, err := a.feed.Due(a.Context(), feeds.DueRequest{Shards: a.shards, Limit: 100})
	a.must(err)
	return due.Messages
}

// block reads the messages of one key and defers them, the first one as told.
func (a *adopted) block(n int, first feeds.Deferral) {
	a.Helper()
	batches := a.read()
	if len(batches) != 1 || len(batches[0].Messages) != n {
		a.Fatalf("got %d batches, want one of %d messages", len(batches), n)
	}
	first.Batch, first.Blocking = &batches[0], true
	all := []feeds.Deferral{first}
	for i := 1; i < n; i++ {
		all = append(all, feeds.Deferral{Batch: &batches[0], Index: i, Status: feeds.StatusWaiting, Blocking: true})
	}
	a.must(a.feed.Defer(a.Context(), all))
	lost, err := a.feed.Settle(a.Context(), []feeds.Mark{{Shard: batches[0].Shard, Batch: &batches[0], Done: n}})
	a.must(err)
	if len(lost) > 0 {
		a.Fatalf("lost %v", lost)
	}
}

// expectRows compares the answer to a query, whose columns are texts, with lines of words.
func (a *adopted) expectRows(query string, want ...string) {
	a.Helper()
	rows, err := a.DB.QueryContext(a.Context(), query)
	a.must(err)
	defer rows.Close()
	names, err := rows.Columns()
	a.must(err)
	var got []string
	for rows.Next() {
		values, targets := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			values[i].String, targets[i] = "", &values[i]
		}
		a.must(rows.Scan(targets...))
		words := make([]string, len(names))
		for i, v := range values {
			if words[i] = v.String; !v.Valid {
				words[i] = "null"
			}
		}
		got = append(got, strings.Join(words, " "))
	}
	a.must(rows.Err())
	if !slices.Equal(got, want) {
		a.Fatalf("%s:\n got %q\nwant %q", query, got, want)
	}
}

const stories = `SELECT type, status, attempts, last_error, CASE WHEN retry_after IS NULL THEN 'never' WHEN retry_after > CURRENT_TIMESTAMP(6) +
	INTERVAL '59' MINUTE AND retry_after < CURRENT_TIMESTAMP(6) + INTERVAL '61' MINUTE THEN 'later' ELSE 'else' END,
	CASE WHEN sent_at IS NULL THEN 'unsent' ELSE 'sent' END, CASE WHEN updated_at IS NULL THEN 'old' ELSE 'new' END FROM bakery_outbox ORDER BY type`

// TestDeferredInItsOwnWords follows a key from its first failure to its end, by what the team that owns the table sees.
func TestDeferredInItsOwnWords(t *testing.T) {
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		a := adoptAs(t, open(t), bakeryTable, bakery)
		for i := range 3 {
			a.exec(fmt.Sprintf(`INSERT INTO bakery_outbox (id, aggregate_id, type, payload, created_at) VALUES
				('0b0e7d52-0000-4000-8000-00000000000%d', 'bread', 'bread.%d', '{"n": %d}', '2026-01-02 03:04:05')`, i, i, i)) // one time for all
		}
		a.block(3, feeds.Deferral{Status: feeds.StatusRetry, Attempts: 1, Delay: time.Hour, Cause: "the oven is “cold”"})
		a.expectRows(stories, "bread.0 FAILED 1 the oven is  later unsent new", "bread.1 NEW 0 null never unsent new", "bread.2 NEW 0 null never unsent new")
		if due := a.due(); len(due) > 0 {
			t.Fatalf("%d messages are due, want none within an hour", len(due))
		}

		seq := func() (shard int, seq int64) {
			a.must(a.DB.QueryRowContext(t.Context(), `SELECT shard, min(seq) FROM postrider_deferred GROUP BY shard`).Scan(&shard, &seq))
			return shard, seq
		}
		shard, first := seq()
		free, err := a.feed.Conclude(t.Context(), []feeds.Conclusion{
			{Shard: shard, Seq: first, Status: feeds.StatusDead, Attempts: 2, Cause: "burnt"}})
		a.must(err)
		if len(free) > 0 {
			t.Errorf("%q are free behind a dead message", free)
		}
		dead := "bread.0 DEAD 2 burnt never unsent new"
		a.expectRows(stories, dead, "bread.1 NEW 0 null never unsent new", "bread.2 NEW 0 null never unsent new")

		a.join() // as after a restart
		if batches := a.read(); len(batches) > 0 {
			t.Fatalf("%d messages are read again, though they are deferred", len(batches[0].Messages))
		}
		if keys, err := a.feed.Blocked(t.Context(), shard); err != nil || !slices.Equal(keys, []string{"/bread"}) {
			t.Errorf("blocked are %q, and %v", keys, err)
		}

		// An operator has it tried again: all go, in their order.
		a.exec(`UPDATE postrider_deferred SET status = 'retry', attempts = 0, available_at = deferred_at WHERE status = 'dead'`)
		due := a.due()
		var types []string
		var done []feeds.Conclusion
		for _, d := range due {
			types = append(types, d.Type)
			done = append(done, feeds.Conclusion{Shard: d.Shard, Seq: d.Seq, Delivered: true})
		}
		if !slices.Equal(types, []string{"bread.0", "bread.1", "bread.2"}) {
			t.Fatalf("due are %q", types)
		}
		if free, err := a.feed.Conclude(t.Context(), done); err != nil || !slices.Equal(free, []string{"/bread"}) {
			t.Errorf("free are %q, and %v", free, err)
		}
		a.expectRows(stories, "bread.0 SENT 2 burnt never sent new", "bread.1 SENT 0 null never sent new", "bread.2 SENT 0 null never sent new")
		a.expectRows(`SELECT row_id FROM postrider_deferred`)
	})
}

// TestDeferredWithoutWords has a table that can only say that a message was delivered.
func TestDeferredWithoutWords(t *testing.T) {
	layout := table.Layout{
		Table: "notes", ID: "id", DefaultType: "note", Columns: table.Columns{AggregateID: "author", Payload: "body"},
		State: table.State{PublishedAt: "published_at"},
	}
	const table = `CREATE TABLE notes (id bigint PRIMARY KEY, author varchar(20) NOT NULL, body text NOT NULL, published_at {time} NULL)`
	const state = `SELECT id, CASE WHEN published_at IS NULL THEN 'waits' ELSE 'gone' END FROM notes ORDER BY id`
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		a := adoptAs(t, open(t), table, layout)
		a.exec(`INSERT INTO notes (id, author, body) VALUES (1, 'ann', 'one'), (2, 'ann', 'two')`)
		a.block(2, feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"})
		a.join()
		if batches := a.read(); len(batches) > 0 {
			t.Fatalf("%d messages are read again, though they are deferred", len(batches[0].Messages))
		}
		a.expectRows(state, "1 waits", "2 waits")
		a.expectRows(`SELECT row_id, status, attempts, last_error FROM postrider_deferred ORDER BY row_id`, "1 dead 3 refused", "2 waiting 0 null")

		// Somebody deletes the row that was tried again meanwhile: the next one must not wait for it.
		a.exec(`UPDATE postrider_deferred SET status = 'retry', available_at = deferred_at WHERE status = 'dead'`)
		a.exec(`DELETE FROM notes WHERE id = 1`)
		deadline := time.Now().Add(20 * time.Second)
		due := a.due()
		for len(due) != 1 || due[0].Status != feeds.StatusRetry {
			if time.Now().After(deadline) {
				t.Fatalf("due are %+v", due)
			}
			due = a.due()
		}
		free, err := a.feed.Conclude(t.Context(), []feeds.Conclusion{{Shard: due[0].Shard, Seq: due[0].Seq, Delivered: true}})
		a.must(err)
		if !slices.Equal(free, []string{"/ann"}) {
			t.Errorf("free are %q", free)
		}
		a.expectRows(state, "2 gone")
		a.expectRows(`SELECT row_id FROM postrider_deferred`)
	})
}
