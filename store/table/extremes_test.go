package table_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestFarTimes has messages that are to be delivered in times that a server may not be able to count.
func TestFarTimes(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		layout := tenanted
		layout.Columns.DeliverAfter = "deliver_after"
		a := adoptAs(t, open(t), strings.Replace(tenantedTable, "tenant varchar", "deliver_after {time} NULL, tenant varchar", 1), layout)
		far := []string{"2037-12-31 12:00:00", "2038-01-20 12:00:00", "2040-07-01 12:00:00", "9999-06-01 12:00:00"}
		for i, at := range far {
			a.exec(fmt.Sprintf("INSERT INTO outbox (id, aggregate_id, payload, deliver_after) VALUES (%d, 'a', '1', '%s')", i+1, at))
		}
		var got []string
		for _, b := range a.read() {
			for _, m := range b.Messages {
				got = append(got, m.DeliverAfter.Format("2006-01"))
			}
		}
		if want := []string{"2037-12", "2038-01", "2040-07", "9999-06"}; !slices.Equal(got, want) {
			t.Errorf("they are to be delivered after %v, want %v", got, want)
		}
	})
}

// TestLargeNumbers has IDs beyond what a number with a sign holds: they are sent, marked and deferred like others.
func TestLargeNumbers(t *testing.T) {
	t.Parallel()
	a := adoptAs(t, tabletest.MariaDB(t), strings.Replace(tenantedTable, "id bigint", "id bigint unsigned", 1), tenanted)
	a.exec(`INSERT INTO outbox (id, aggregate_id, payload) VALUES (7, 'a', '1'), (9223372036854775807, 'a', '2'), (9223372036854775808, 'a', '3'),
		(18446744073709551614, 'a', '4'), (18446744073709551615, 'a', '5')`)
	a.block(5, dead)
	a.expectRows("SELECT concat(payload, status) FROM outbox ORDER BY id", "1dead", "2pending", "3pending", "4pending", "5pending")
	a.exec("DELETE FROM outbox WHERE id = 7")
	var got []string
	for until := time.Now().Add(6 * time.Second); time.Now().Before(until) && len(got) < 4; time.Sleep(50 * time.Millisecond) {
		a.read()
		for _, m := range a.due() {
			got = append(got, string(m.Payload))
			_, err := a.feed.(feeds.Deferrer).Conclude(t.Context(), []feeds.Conclusion{{Shard: m.Shard, Seq: m.Seq, Delivered: true}})
			a.must(err)
		}
	}
	if !slices.Equal(got, []string{"2", "3", "4", "5"}) {
		t.Errorf("sent %v", got)
	}
	a.exec("INSERT INTO outbox (id, aggregate_id, payload) VALUES (18446744073709551613, 'b', '6')")
	batches := a.read()
	if len(batches) != 1 || len(batches[0].Messages) != 1 {
		t.Fatalf("read %v", batches)
	}
	_, err := a.feed.Settle(t.Context(), done(&batches[0]))
	a.must(err)
	a.expectRows("SELECT concat(payload, status) FROM outbox ORDER BY id", "2sent", "3sent", "6sent", "4sent", "5sent")
	if g, err := newAdmin(t, a.Server, table.Config{Dialect: a.Dialect, Layout: tenanted}).Gauges(t.Context()); err != nil || len(g.Feeds) != 1 {
		t.Errorf("gauges: %+v, %v", g, err)
	}
}

// TestTouchedOrder refuses an order by a time that moves with every update, which older servers give the first timestamp of a table.
func TestTouchedOrder(t *testing.T) {
	t.Parallel()
	s := tabletest.MariaDB(t)
	p := &place{T: t, Server: s}
	p.exec(columnsOf(s.Dialect, strings.Replace(bakeryTable, "created_at {time} NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
		"created_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", 1)))
	tabletest.Migrate(t, s, table.Config{Layout: bakery})
	_, err := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: bakery}).Open(t.Context(), "feed", feeds.Member{Name: "relay", Lease: time.Minute})
	if err == nil || !strings.Contains(err.Error(), `cannot be ordered by "created_at"`) {
		t.Errorf("opened: %v", err)
	}
	found, err := adopt.Inspect(t.Context(), s.DB, s.Dialect, "bakery_outbox")
	p.must(err)
	proposal, err := adopt.Propose(found)
	p.must(err)
	if slices.Contains(proposal.Layout.OrderBy, "created_at") {
		t.Errorf("proposed is the order %v", proposal.Layout.OrderBy)
	}
}

// TestClaimsOfTheFuture takes over what was claimed before the clocks were set back.
func TestClaimsOfTheFuture(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		a := adoptAs(t, open(t), claimedTable, claimed)
		a.exec(`INSERT INTO tickets (id, aggregate_id, payload, status, locked_at, locked_by) VALUES
			(1, 'a', '1', 'processing', now() + INTERVAL '59' MINUTE, 'another'), (2, 'b', '2', 'processing', now(), 'another')`)
		var got []string
		for _, b := range a.read() {
			for _, m := range b.Messages {
				got = append(got, string(m.Payload))
			}
		}
		if !slices.Equal(got, []string{"1"}) {
			t.Errorf("read %v, want what nobody can have claimed", got)
		}
	})
}
