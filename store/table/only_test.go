package table_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// tenanted is a table of several tenants.
var tenanted = table.Layout{
	Table: "outbox", ID: "id",
	Columns: table.Columns{Type: "type", AggregateID: "aggregate_id", TenantID: "tenant", Payload: "payload"},
	State:   table.State{Status: "status", Pending: []string{"pending"}, Published: "sent", Dead: "dead"},
}

const tenantedTable = `CREATE TABLE outbox (
	id bigint PRIMARY KEY, aggregate_id varchar(64) NOT NULL, type varchar(64) NOT NULL DEFAULT 'x', payload {json} NOT NULL,
	tenant varchar(64) NULL, status varchar(16) NOT NULL DEFAULT 'pending')`

// carrier is a feed of a table, with a filter.
type carrier struct {
	*testing.T
	feed   feeds.Feed
	shards []int
}

func carry(t *testing.T, s tabletest.Server, layout table.Layout, name string, only route.Match) *carrier {
	t.Helper()
	store := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: layout, Only: only})
	feed, err := store.Open(t.Context(), name, feeds.Member{Name: "relay", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = feed.Close(context.WithoutCancel(t.Context())) })
	share, err := feed.Balance(t.Context())
	if err != nil || len(share.Shards) != 8 {
		t.Fatalf("holds %v, want eight shards: %v", share.Shards, err)
	}
	return &carrier{t, feed, share.Shards}
}

// sent delivers all that there is, and returns the payloads.
func (c *carrier) sent() []string {
	c.Helper()
	var want []feeds.Demand
	for _, s := range c.shards {
		want = append(want, feeds.Demand{Shard: s, Limit: 100})
	}
	batches, err := c.feed.Read(c.Context(), want)
	if err != nil {
		c.Fatal(err)
	}
	var all []string
	for i := range batches {
		for _, m := range batches[i].Messages {
			all = append(all, string(m.Payload))
		}
		if lost, err := c.feed.Settle(c.Context(), done(&batches[i])); err != nil || len(lost) > 0 {
			c.Fatalf("lost %v: %v", lost, err)
		}
	}
	slices.Sort(all)
	return all
}

// TestFilterLeavesRowsAlone has two feeds of one table whose filters exclude each other. Each sends what it is to send, and what neither
// is to send waits as before.
func TestFilterLeavesRowsAlone(t *testing.T) {
	t.Parallel()
	processing := tenanted
	processing.State.Processing = "processing"
	for kind, layout := range map[string]table.Layout{"rows": tenanted, "claims": processing, "own": {}} {
		t.Run(kind, func(t *testing.T) {
			tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
				s := open(t)
				tabletest.Migrate(t, s, table.Config{Layout: layout})
				p := &place{T: t, Server: s}
				state := "SELECT concat(id, status) FROM outbox ORDER BY id"
				tenants := []string{"acme", "ACME", "zeta", "", "a_me!%", "axme!%", "zoo ", "nobody", "nobody"}
				if kind == "own" {
					state = "SELECT concat(id, CASE status WHEN 'published' THEN 'sent' ELSE status END) FROM postrider_outbox ORDER BY id"
					tx := begin(t, s, table.Config{Dialect: s.Dialect})
					for i, tenant := range tenants {
						m := postrider.Event("x", postrider.Aggregate{Type: "order", ID: "1"}, []byte(fmt.Sprint(i+1)))
						m.TenantID = tenant
						p.must(tx.Enqueue(t.Context(), m))
					}
					p.must(tx.Commit())
				} else {
					p.exec(columnsOf(s.Dialect, tenantedTable))
					for i, tenant := range tenants {
						word := "'" + tenant + "'"
						if tenant == "" {
							word = "NULL"
						}
						p.exec(fmt.Sprintf("INSERT INTO outbox (id, aggregate_id, payload, tenant) VALUES (%d, 'a', '%[1]d', %s)", i+1, word))
					}
				}
				a := carry(t, s, layout, "a", route.Match{Tenants: []string{"acme", "z*", "a_me!%"}, Types: []string{"x"}})
				b := carry(t, s, layout, "b", route.Match{Tenants: []string{"", "ACME", "ax*%"}})

				d := newAdmin(t, s, table.Config{Dialect: s.Dialect, Layout: layout})
				listed, err := d.ListFeeds(t.Context())
				p.must(err)
				if len(listed) != 2 || listed[0].Name != "a" || listed[0].Pending != 4 || listed[1].Name != "b" || listed[1].Pending != 3 {
					t.Errorf("the admin API shows %+v, want feed a with 4 messages and b with 3", listed)
				}
				if got := strings.Join(a.sent(), " "); got != "1 3 5 7" {
					t.Errorf("feed a has sent %s", got)
				}
				want := []string{"1sent", "2pending", "3sent", "4pending", "5sent", "6pending", "7sent", "8pending", "9pending"}
				if got := p.rows(state); !slices.Equal(got, want) {
					t.Errorf("when feed a has sent its rows, the table says %v, want %v", got, want)
				}
				if got := strings.Join(b.sent(), " "); got != "2 4 6" {
					t.Errorf("feed b has sent %s", got)
				}
				if more := append(a.sent(), b.sent()...); len(more) > 0 {
					t.Errorf("sent again: %v", more)
				}
				want = []string{"1sent", "2sent", "3sent", "4sent", "5sent", "6sent", "7sent", "8pending", "9pending"}
				if got := p.rows(state); !slices.Equal(got, want) {
					t.Errorf("the table says %v, want %v", got, want)
				}

				// A third one that wants what another has is refused, and so is one without a filter.
				for _, only := range []route.Match{{}, {Tenants: []string{"*o*"}}} {
					_, err := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: layout, Only: only}).
						Open(t.Context(), "c", feeds.Member{Name: "relay", Lease: time.Minute})
					var taken *feeds.NoFeedError
					if !errors.As(err, &taken) || !slices.Equal(taken.Feeds, []string{"a"}) {
						t.Errorf("a feed with the filter %v: %v, want that it is refused for the sake of a", only, err)
					}
				}
				c := carry(t, s, layout, "c", route.Match{Tenants: []string{"no*"}})
				if got := strings.Join(c.sent(), " "); got != "8 9" {
					t.Errorf("feed c has sent %s", got)
				}
				if n, err := d.Rewind(t.Context(), admin.By{Who: "op"}, "b", admin.Point{Time: time.Unix(0, 0)}); kind == "own" && (n != 3 || err != nil) {
					t.Errorf("rewound %d rows of feed b: %v; want its own three", n, err)
				}
			})
		})
	}
}

// TestAdminOfSeveralFeeds has dead messages of two feeds of one table: operators see both, page by page, and act on either.
func TestAdminOfSeveralFeeds(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		p := &place{T: t, Server: s}
		p.exec(columnsOf(s.Dialect, tenantedTable))
		tabletest.Migrate(t, s, table.Config{Layout: tenanted})
		for i := range 6 {
			p.exec(fmt.Sprintf("INSERT INTO outbox (id, aggregate_id, payload, tenant) VALUES (%d, 'k%[1]d', '%[1]d', '%s')", i+1, []string{"x", "y"}[i%2]))
		}
		for name, tenant := range map[string]string{"Y": "y", "x": "x"} { // which a collation may put in another order
			c := carry(t, s, tenanted, name, route.Match{Tenants: []string{tenant}})
			var want []feeds.Demand
			for _, shard := range c.shards {
				want = append(want, feeds.Demand{Shard: shard, Limit: 10})
			}
			batches, err := c.feed.Read(t.Context(), want)
			p.must(err)
			for i := range batches {
				for j := range batches[i].Messages {
					one := dead
					one.Batch, one.Index, one.Blocking = &batches[i], j, true
					p.must(c.feed.(feeds.Deferrer).Defer(t.Context(), []feeds.Deferral{one}))
				}
				_, err := c.feed.Settle(t.Context(), done(&batches[i]))
				p.must(err)
			}
		}
		d := newAdmin(t, s, table.Config{Dialect: s.Dialect, Layout: tenanted})
		var got []string
		var after *feeds.Deferred
		for range 10 {
			page, err := d.List(t.Context(), admin.Filter{}, after, 2)
			p.must(err)
			if len(page) == 0 {
				break
			}
			for _, l := range page {
				got = append(got, l.Feed+string(l.Payload))
			}
			after = &page[len(page)-1]
		}
		if want := []string{"Y2", "Y4", "Y6", "x1", "x3", "x5"}; !slices.Equal(got, want) {
			t.Errorf("listed are %v, want %v", got, want)
		}
		blocked, err := d.Blocked(t.Context(), "", 100)
		p.must(err)
		counts, err := d.Count(t.Context(), admin.Filter{}, 0)
		p.must(err)
		groups, err := d.Groups(t.Context(), admin.Filter{}, 100, 10)
		p.must(err)
		if len(blocked) != 6 || counts[feeds.StatusDead] != 6 || groups.Sampled != 6 {
			t.Errorf("%d keys are blocked, %v counted, %d grouped; want 6 of each", len(blocked), counts, groups.Sampled)
		}
		if n, err := d.Act(t.Context(), admin.By{Who: "op"}, admin.Discard, admin.Filter{Feed: "x"}, 0); n != 3 || err != nil {
			t.Errorf("discarded %d: %v; want the three of feed x", n, err)
		}
		if n, err := d.Act(t.Context(), admin.By{Who: "op"}, admin.Retry, admin.Filter{}, 2); n != 2 || err != nil {
			t.Errorf("sent %d again: %v; want two", n, err)
		}
	})
}

// TestFilterByNothing refuses a filter by what the table does not say: nothing would ever be sent.
func TestFilterByNothing(t *testing.T) {
	layout := tenanted
	layout.Columns.TenantID = ""
	layout.DefaultTopic = "orders"
	for _, x := range []struct {
		only  route.Match
		wrong string
	}{
		{route.Match{Tenants: []string{"acme"}}, "tenants: table outbox has no column"},
		{route.Match{Topics: []string{"bills"}}, "topics: table outbox has no column"},
		{route.Match{Topics: []string{"ord*"}, Tenants: []string{""}}, ""},
	} {
		err := table.Config{Dialect: table.MySQL, Layout: layout, Only: x.only}.Validate()
		if (err != nil) != (x.wrong != "") || err != nil && !strings.Contains(err.Error(), x.wrong) {
			t.Errorf("%+v: %v, want %q", x.only, err, x.wrong)
		}
	}
}
