package table_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

var by = admin.By{Who: "ann@host", Why: "a test"}

// opened returns the operator's side of an adopted table.
func (a *adopted) opened(layout table.Layout) *table.Admin {
	a.Helper()
	return newAdmin(a, a.Server, table.Config{Dialect: a.Dialect, Layout: layout, Shards: 2})
}

// settleAll reads everything and confirms it.
func (a *adopted) settleAll() {
	a.Helper()
	for _, b := range a.read() {
		lost, err := a.feed.Settle(a.Context(), []feeds.Mark{{Shard: b.Shard, Batch: &b, Done: len(b.Messages)}})
		if a.must(err); len(lost) > 0 {
			a.Fatalf("lost %v", lost)
		}
	}
}

// logged reads the whole log in pages.
func (a *adopted) logged(d *table.Admin, filter admin.Filter, limit int) (types []string) {
	a.Helper()
	for before := int64(0); ; {
		page, err := d.Messages(a.Context(), "bakery", filter, before, limit)
		a.must(err)
		for _, m := range page.Items {
			types = append(types, fmt.Sprint(m.Type, " ", m.Status))
		}
		if page.Next == 0 {
			return types
		}
		if before > 0 && page.Next >= before {
			a.Fatalf("the page before %d goes on before %d", before, page.Next)
		}
		before = page.Next
	}
}

func (a *adopted) act(d *table.Admin, act admin.Act, filter admin.Filter, want int) {
	a.Helper()
	if n, err := d.Act(a.Context(), by, act, filter, 0); err != nil || n != want {
		a.Fatalf("%s: %d messages, and %v; want %d", act, n, err, want)
	}
}

// TestAdminOverAdoptedTable works on a table with words of its own, whose messages have all been written at the same time.
func TestAdminOverAdoptedTable(t *testing.T) {
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		a := adoptAs(t, open(t), bakeryTable, bakery)
		d := a.opened(bakery)
		bake := func(key string, from, to int) {
			for i := from; i < to; i++ {
				a.exec(fmt.Sprintf(`INSERT INTO bakery_outbox (id, aggregate_id, type, payload, created_at) VALUES
					('0b0e7d52-0000-4000-8000-00000000000%d', '%s', 'bread.%d', '{"n": %d}', '2026-01-02 03:04:05')`, i, key, i, i))
			}
		}
		bake("rye", 0, 4)
		a.settleAll()
		bake("bread", 4, 7)
		a.block(3, feeds.Deferral{Status: feeds.StatusDead, Attempts: 2, Cause: "burnt"})
		bake("rye", 7, 8)

		want := []string{"bread.7 pending", "bread.6 waiting", "bread.5 waiting", "bread.4 dead", "bread.3 published", "bread.2 published",
			"bread.1 published", "bread.0 published"}
		for _, limit := range []int{1, 3, 100} {
			got := a.logged(d, admin.Filter{}, limit)
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("in pages of %d: %q", limit, got)
			}
		}
		if got := a.logged(d, admin.Filter{Key: "/bread", Statuses: []feeds.Status{feeds.StatusDead}}, 1); !slices.Equal(got, want[3:4]) {
			t.Errorf("the dead one: %q", got)
		}

		list, err := d.List(t.Context(), admin.Filter{Type: "bread.4"}, nil, 10)
		if a.must(err); len(list) != 1 || list[0].LastError != "burnt" {
			t.Fatalf("got %+v", list)
		}
		id := list[0].ID
		edited := list[0].Message
		edited.Payload = []byte(`{"n": 44}`)
		edited.RoutingKey = "ovens"
		if err := d.Edit(t.Context(), by, "bakery", id, edited); !errors.Is(err, admin.ErrRefused) {
			t.Errorf("there is no column for the routing key, and it was changed: %v", err)
		}
		edited.RoutingKey = ""
		a.must(d.Edit(t.Context(), by, "bakery", id, edited))
		if due := a.due(); len(due) != 3 || string(due[0].Payload) != `{"n": 44}` {
			t.Fatalf("due are %+v", due)
		}
		a.act(d, admin.Park, admin.Filter{ID: id}, 1)
		a.act(d, admin.Discard, admin.Filter{ID: id}, 1)
		a.expectRows(`SELECT type, status FROM bakery_outbox WHERE aggregate_id = 'bread' ORDER BY type`, "bread.4 DEAD", "bread.5 NEW", "bread.6 NEW")
		if due := a.due(); len(due) != 2 || due[0].Type != "bread.5" || due[0].Status != feeds.StatusRetry {
			t.Errorf("behind what was discarded: %+v", due)
		}
		if j, err := d.Journey(t.Context(), id); err != nil || j.Feeds[0].Status != feeds.StatusPublished || len(j.Records) != 3 {
			t.Errorf("the journey of what was discarded: %+v, and %v", j, err)
		}

		n, err := d.Rewind(t.Context(), by, "bakery", admin.Point{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil || n != 4 {
			t.Errorf("rewound %d, and %v; want what was delivered", n, err)
		}
		if listed, err := d.ListFeeds(t.Context()); err != nil || listed[0].Pending != 5 || listed[0].Deferred != 2 || listed[0].Blocked != 1 {
			t.Errorf("got %+v, and %v", listed, err)
		}
		a.must(a.feed.Close(t.Context()))
		a.must(d.RemoveFeed(t.Context(), by, "bakery"))
		a.expectRows(`SELECT status, count(*) FROM bakery_outbox GROUP BY status ORDER BY status`, "DEAD 1", "NEW 7")
	})
}

// TestAdminWithoutWords works on a table whose messages have neither an ID of their own nor a time, and which only says what was
// delivered.
func TestAdminWithoutWords(t *testing.T) {
	layout := table.Layout{
		Table: "notes", ID: "id", DefaultType: "note", Columns: table.Columns{AggregateID: "author", Payload: "body"},
		State: table.State{PublishedAt: "published_at"},
	}
	const notes = `CREATE TABLE notes (id bigint PRIMARY KEY, author varchar(20) NOT NULL, body text NOT NULL, published_at {time} NULL)`
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		a := adoptAs(t, open(t), notes, layout)
		d := a.opened(layout)
		a.exec(`INSERT INTO notes (id, author, body) VALUES (1, 'ann', 'one'), (2, 'ann', 'two')`)
		a.settleAll()
		a.exec(`INSERT INTO notes (id, author, body) VALUES (3, 'ann', 'three'), (4, 'ann', 'four')`)
		a.block(2, feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"})
		if got := a.logged(d, admin.Filter{}, 1); !slices.Equal(got, []string{"note waiting", "note dead", "note published", "note published"}) {
			t.Errorf("got %q", got)
		}
		identity, err := table.Identity(t.Context(), a.DB, table.Config{Dialect: a.Dialect})
		a.must(err)
		first, third := table.DerivedID(identity, "notes", "1"), table.DerivedID(identity, "notes", "3")
		if j, err := d.Journey(t.Context(), first); err != nil || j.Seq != 1 || j.Feeds[0].Status != feeds.StatusPublished || j.Feeds[0].Settled.IsZero() {
			t.Errorf("got %+v, and %v", j, err)
		}
		if _, err := d.Journey(t.Context(), postrider.NewID()); !errors.Is(err, admin.ErrNoMessage) {
			t.Errorf("of nothing: %v", err)
		}
		a.act(d, admin.Discard, admin.Filter{ID: third}, 1)
		a.expectRows(`SELECT id, CASE WHEN published_at IS NULL THEN 'waits' ELSE 'gone' END FROM notes ORDER BY id`, "1 gone", "2 gone", "3 gone", "4 waits")
		if _, err := d.Rewind(t.Context(), by, "bakery", admin.Point{Time: time.Now()}); !errors.Is(err, admin.ErrRefused) {
			t.Errorf("rewound to a time that no row has: %v", err)
		}
		if n, err := d.Rewind(t.Context(), by, "bakery", admin.Point{ID: table.DerivedID(identity, "notes", "2")}); err != nil || n != 2 {
			t.Errorf("rewound %d, and %v; want 2", n, err)
		}
		if g, err := d.Gauges(t.Context()); err != nil || g.Feeds[0].Pending.N != 2 || g.Feeds[0].Deferred.Retry != 1 || g.Enqueued != 4 {
			t.Errorf("got %+v, and %v", cmp.Or(g, &admin.Standing{}), err)
		}
	})
}

// TestAdminOfRowsThatAreDeleted works on a table that keeps nothing.
func TestAdminOfRowsThatAreDeleted(t *testing.T) {
	layout := table.Layout{
		Table: "changes", ID: "id", OrderBy: []string{"id"},
		Columns: table.Columns{Type: "type", AggregateType: "aggregatetype", AggregateID: "aggregateid", Payload: "payload"},
		State:   table.State{Delete: true},
	}
	const notes = `CREATE TABLE changes (id {uuid} PRIMARY KEY, aggregatetype varchar(20), aggregateid varchar(20), type varchar(20), payload {json})`
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		a := adoptAs(t, open(t), notes, layout)
		d := a.opened(layout)
		for i := range 3 {
			a.exec(fmt.Sprintf(`INSERT INTO changes VALUES ('0b0e7d52-0000-7000-8000-00000000000%d', 'order', '7', 'paid', '{}')`, i))
		}
		a.block(3, feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"})
		list, err := d.List(t.Context(), admin.Filter{Head: true}, nil, 10)
		if a.must(err); len(list) != 1 || list[0].Key != "" || list[0].OrderKey() != "order/7" {
			t.Fatalf("got %+v", list)
		}
		if got := a.logged(d, admin.Filter{}, 2); !slices.Equal(got, []string{"paid waiting", "paid waiting", "paid dead"}) {
			t.Errorf("got %q", got)
		}
		a.act(d, admin.Discard, admin.Filter{ID: list[0].ID}, 1)
		a.expectRows(`SELECT count(*) FROM changes`, "2")
		if j, err := d.Journey(t.Context(), list[0].ID); err != nil || j.InLog || len(j.Records) != 1 || j.Message.Type != "paid" {
			t.Errorf("got %+v, and %v; want what the records know", j, err)
		}
		if _, err := d.Rewind(t.Context(), by, "bakery", admin.Point{ID: list[0].ID}); !errors.Is(err, admin.ErrRefused) {
			t.Errorf("rewound what is deleted: %v", err)
		}
	})
}
