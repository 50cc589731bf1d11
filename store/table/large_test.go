package table_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestLargeMessages reads far more than fits into memory at once: each read is bounded, also the first, which knows nothing of sizes yet,
// and what did not fit into one comes with the next, also where claims do not say whose they are.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	const size, rows, most = 1 << 20, 80, 33 << 20
	signed := claimed
	nameless := claimed
	nameless.State.ClaimedBy = ""
	bare := claimed
	bare.State.Processing, bare.State.ClaimedAt, bare.State.ClaimedBy = "", "", ""
	for kind, layout := range map[string]table.Layout{"claims with a name": signed, "claims without a name": nameless, "no claims": bare} {
		t.Run(kind, func(t *testing.T) {
			tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
				a := adoptAs(t, open(t), strings.Replace(claimedTable, "payload {json}", "payload {large}", 1), layout)
				for i := range rows {
					a.exec(fmt.Sprintf("INSERT INTO tickets (id, aggregate_id, payload) VALUES (%d, 'a', repeat('x', %d))", i+1, size))
				}
				var batches []feeds.Batch
				got, reads := 0, 0
				for ; got < rows && reads < 5; reads++ {
					bytes := 0
					for _, b := range a.read() {
						batches = append(batches, b)
						for i := range b.Messages {
							bytes += len(b.Messages[i].Payload)
							got++
						}
					}
					if bytes > most {
						t.Fatalf("read %d returned %d bytes, want at most %d", reads+1, bytes, most)
					}
				}
				if got != rows {
					t.Fatalf("%d reads returned %d messages, want all %d", reads, got, rows)
				}
				_, err := a.feed.Settle(t.Context(), done(&batches[0]))
				a.must(err)

				// What was claimed and not handed out is given back with the shard.
				a.exec("UPDATE tickets SET status = 'pending'")
				a.join()
				a.read()
				a.join()
				a.expectRows("SELECT DISTINCT status FROM tickets", "pending")
			})
		})
	}
}
