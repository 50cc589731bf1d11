package table_test

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestRowsChangedByHand has an operator change rows in the table itself. A dead message that is set back to its pending word is sent
// again, before what waits for it; one whose row is deleted or marked as sent holds up nothing.
func TestRowsChangedByHand(t *testing.T) {
	t.Parallel()
	failing := tenanted
	failing.State.Processing, failing.State.Failed = "processing", "failed"
	wordless := tenanted
	wordless.State.Dead = ""
	for _, x := range []struct {
		name, statement string
		layout          table.Layout
		first           feeds.Deferral
		park            bool
		want            []string
	}{
		{"pending", "UPDATE outbox SET status = 'pending' WHERE id = 1", tenanted, dead, false, []string{"1", "2", "3"}},
		{"pending, with a claim", "UPDATE outbox SET status = 'pending' WHERE id = 1", failing, dead, false, []string{"1", "2", "3"}},
		// What was parked holds up nothing.
		{"parked, pending", "UPDATE outbox SET status = 'pending' WHERE id = 1", tenanted, dead, true, []string{"2", "3", "1"}},
		{"deleted", "DELETE FROM outbox WHERE id = 1", tenanted, dead, false, []string{"2", "3"}},
		{"sent", "UPDATE outbox SET status = 'sent' WHERE id = 1", tenanted, dead, false, []string{"2", "3"}},
		{"deleted without a word", "DELETE FROM outbox WHERE id = 1", wordless, dead, false, []string{"2", "3"}},
		{"untouched", "SELECT 1", tenanted, dead, false, nil},
		{"untouched without a word", "SELECT 1", wordless, dead, false, nil},
		{"retry, sent", "UPDATE outbox SET status = 'sent' WHERE id = 1", failing, retried, false, []string{"2", "3"}},
		{"retry, deleted", "DELETE FROM outbox WHERE id = 1", failing, retried, false, []string{"2", "3"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
				a := adoptAs(t, open(t), tenantedTable, x.layout)
				a.exec(`INSERT INTO outbox (id, aggregate_id, payload) VALUES (1, 'a', '1'), (2, 'a', '2'), (3, 'a', '3')`)
				a.block(3, x.first)
				if x.park {
					d := newAdmin(t, a.Server, table.Config{Dialect: a.Dialect, Layout: x.layout})
					if n, err := d.Act(t.Context(), admin.By{Who: "op"}, admin.Park, admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, 0); n != 1 || err != nil {
						t.Fatalf("parked %d: %v", n, err)
					}
				}
				a.exec(x.statement)
				var got []string
				for until := time.Now().Add(6 * time.Second); time.Now().Before(until) && len(got) < max(len(x.want), 1); time.Sleep(50 * time.Millisecond) {
					if batches := a.read(); len(batches) > 0 {
						t.Fatalf("%d messages are read past what is deferred", len(batches[0].Messages))
					}
					for _, m := range a.due() {
						got = append(got, string(m.Payload))
						_, err := a.feed.(feeds.Deferrer).Conclude(t.Context(), []feeds.Conclusion{{Shard: m.Shard, Seq: m.Seq, Delivered: true}})
						a.must(err)
					}
				}
				if !slices.Equal(got, x.want) {
					t.Fatalf("sent %v, want %v", got, x.want)
				}
				if x.want != nil {
					a.expectRows("SELECT count(*) FROM postrider_deferred", "0")
					a.expectRows("SELECT count(*) FROM outbox WHERE status <> 'sent'", "0")
				}
			})
		})
	}
}

var (
	dead    = feeds.Deferral{Status: feeds.StatusDead, Attempts: 3, Cause: "refused"}
	retried = feeds.Deferral{Status: feeds.StatusRetry, Attempts: 1, Delay: 100 * time.Millisecond, Cause: "refused"}
)
