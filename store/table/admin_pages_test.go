package table_test

import (
	"fmt"
	"testing"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
)

// TestAdminInPages goes through more messages than are looked at a time, most of which lie in few shards.
func TestAdminInPages(t *testing.T) {
	t.Parallel()
	const n = 3000
	places(t, table.Config{}, func(p *place) {
		feed, _ := p.joined(1 << 40)
		p.must(feed.Close(p.Context()))
		numbers, text := fmt.Sprintf("generate_series(1, %d) AS g(seq)", n), "text"
		if p.Dialect == table.MySQL {
			digit := "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
			numbers, text = fmt.Sprintf("(SELECT 1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS seq FROM %[1]s a, %[1]s b, %[1]s c, %[1]s d ORDER BY 1 LIMIT %[2]d) g", digit, n), "char"
		}
		p.exec(`INSERT INTO postrider_outbox (status, type, aggregate_type, aggregate_id, payload)
			SELECT 'dead', CASE WHEN seq % 7 = 0 THEN 'seventh' ELSE 'other' END, 'order', CASE WHEN seq % 10 = 0 THEN CAST(seq AS ` + text +
			`) ELSE 'one' END, '{}' FROM ` + numbers)
		p.exec(`INSERT INTO postrider_deferred (feed, row_id, shard, seq, order_key, status, attempts, enqueued_at, deferred_at, last_error)
			SELECT f.feed, CAST(o.id AS ` + text + `), o.shard, o.id, concat('order/', o.aggregate_id), 'dead', 3, o.created_at, o.created_at,
			  CASE WHEN o.id % 100 = 0 THEN 'time out' ELSE 'refused' END FROM postrider_outbox o JOIN postrider_feeds f ON 1 = 1`)
		d := newAdmin(p, p.Server, p.cfg)
		walk := func(filter admin.Filter, limit int) (count int) {
			p.Helper()
			for after := (*feeds.Deferred)(nil); ; {
				page, err := d.List(p.Context(), filter, after, limit)
				p.must(err)
				for i := range page {
					if after != nil && page[i].Seq <= after.Seq {
						p.Fatalf("%d comes behind %d", page[i].Seq, after.Seq)
					}
					after = &page[i]
				}
				if count += len(page); len(page) < limit {
					return count
				}
			}
		}
		for filter, want := range map[string]int{"": n, "seventh": n / 7} {
			if got := walk(admin.Filter{Type: filter}, 700); got != want {
				p.Errorf("of type %q: %d messages, want %d", filter, got, want)
			}
		}
		if counts, err := d.Count(p.Context(), admin.Filter{Error: "TIME"}, 0); err != nil || counts[feeds.StatusDead] != n/100 {
			p.Errorf("counted %v, and %v; want %d", counts, err, n/100)
		}
		if g, err := d.Groups(p.Context(), admin.Filter{}, 200, 10); err != nil || g.Sampled != 200 || g.All || g.Groups[1].Count != 2 {
			p.Errorf("of the newest: %+v, and %v", g, err)
		}
		before, seen := int64(0), 0
		for {
			page, err := d.Messages(p.Context(), feedName(p), admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, before, 400)
			p.must(err)
			if seen += len(page.Items); page.Next == 0 {
				break
			}
			before = page.Next
		}
		if seen != n {
			p.Errorf("%d messages of the log, want %d", seen, n)
		}
		if got, err := d.Act(p.Context(), by, admin.Discard, admin.Filter{}, 0); err != nil || got != n {
			p.Errorf("discarded %d, and %v; want %d", got, err, n)
		}
		if left := p.rows("SELECT count(*) FROM postrider_outbox WHERE status <> 'discarded'"); left[0] != "0" {
			p.Errorf("%s rows are not discarded", left[0])
		}
	})
}

func feedName(p *place) string { return p.rows("SELECT feed FROM postrider_feeds")[0] }
