package table_test

import (
	"testing"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// claimed is a table whose rows say who is at work on them.
var claimed = table.Layout{
	Table: "tickets", ID: "id",
	Columns: table.Columns{Type: "type", AggregateID: "aggregate_id", Payload: "payload", CreatedAt: "created_at"},
	State: table.State{
		Status: "status", Pending: []string{"pending"}, Processing: "processing", Published: "published", ClaimedAt: "locked_at", ClaimedBy: "locked_by",
	},
}

const claimedTable = `CREATE TABLE tickets (
	id bigint PRIMARY KEY, aggregate_id varchar(64) NOT NULL, type varchar(64) NOT NULL DEFAULT 'x', payload {json} NOT NULL,
	status varchar(16) NOT NULL DEFAULT 'pending', created_at {time} NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
	locked_at {time} NULL, locked_by varchar(20) NULL)`

// TestClaimKeepsOrder has rows that belong to others: locked by a session, or claimed by a relay of another make. What is behind
// them in the order of their key stays; other keys go on.
func TestClaimKeepsOrder(t *testing.T) {
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		a := adoptAs(t, open(t), claimedTable, claimed)
		a.exec(`INSERT INTO tickets (id, aggregate_id, payload) VALUES (1, 'a', '1'), (2, 'b', '2'), (3, 'a', '3'), (4, 'b', '4'), (5, 'c', '5')`)
		p := &place{T: t, Server: a.Server}
		expect := func(what string, want ...string) {
			t.Helper()
			got := make(map[string]string)
			for _, b := range a.read() {
				for i := range b.Messages {
					got[b.Messages[i].AggregateID] += string(b.Messages[i].Payload)
				}
			}
			wanted := make(map[string]string)
			for _, w := range want {
				wanted[w[:1]] = w[1:]
			}
			if len(got) != len(wanted) {
				t.Fatalf("%s: got %v, want %v", what, got, wanted)
			}
			for key := range wanted {
				if got[key] != wanted[key] {
					t.Fatalf("%s: got %v, want %v", what, got, wanted)
				}
			}
		}
		unlock := p.lockRows("SELECT id FROM tickets WHERE id = 1")
		a.exec("UPDATE tickets SET status = 'processing', locked_at = now(), locked_by = 'another' WHERE id = 4")
		expect("the first of a is locked, the second of b is claimed", "b2", "c5")
		a.expectRows("SELECT concat(id, status) FROM tickets WHERE id <> 1 ORDER BY id", "2processing", "3pending", "4processing", "5processing")
		unlock()
		expect("nothing is locked", "a13")
		a.exec("UPDATE tickets SET locked_at = '2020-01-01 00:00:00' WHERE id = 4")
		expect("the other's claim is old", "b4")
		expect("all are handed out")

		// What was claimed and not sent is given back with the shard.
		a.join()
		a.expectRows("SELECT DISTINCT status FROM tickets", "pending")
		expect("another member", "a13", "b24", "c5")
		var marks []feeds.Mark
		for _, s := range a.shards {
			marks = append(marks, feeds.Mark{Shard: s})
		}
		a.must(a.feed.Release(t.Context(), marks))
	})
}
