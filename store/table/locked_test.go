package table_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestLockedRowsAreLeft has another worker hold a row with FOR UPDATE, in tables that have no word for that. The row and what is behind
// it in its key are left alone until the worker has ended; what it has marked as sent is not sent again.
func TestLockedRowsAreLeft(t *testing.T) {
	t.Parallel()
	timed, gone := tenanted, tenanted
	timed.State = table.State{PublishedAt: "sent_at"}
	gone.State = table.State{Delete: true}
	for kind, x := range map[string]struct {
		layout  table.Layout
		publish string
	}{
		"status":  {tenanted, "UPDATE outbox SET status = 'sent' WHERE id = 1"},
		"time":    {timed, "UPDATE outbox SET sent_at = CURRENT_TIMESTAMP WHERE id = 1"},
		"deletes": {gone, "DELETE FROM outbox WHERE id = 1"},
	} {
		t.Run(kind, func(t *testing.T) {
			tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
				statement := strings.Replace(tenantedTable, "tenant varchar", "sent_at {time} NULL, tenant varchar", 1)
				a := adoptAs(t, open(t), statement, x.layout)
				a.exec(`INSERT INTO outbox (id, aggregate_id, payload) VALUES (1, 'a', '1'), (2, 'b', '2'), (3, 'a', '3'), (4, 'b', '4')`)
				expect := func(what string, want ...string) {
					t.Helper()
					var got []string
					for _, b := range a.read() {
						for _, m := range b.Messages {
							got = append(got, string(m.Payload))
						}
					}
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Fatalf("%s: read %v, want %v", what, got, want)
					}
				}
				worker, err := a.DB.BeginTx(t.Context(), nil)
				a.must(err)
				var id int
				a.must(worker.QueryRowContext(t.Context(), "SELECT id FROM outbox WHERE id = 1 FOR UPDATE").Scan(&id))
				expect("a worker is at work on the first of a", "2", "4")
				_, err = worker.ExecContext(t.Context(), x.publish)
				a.must(err)
				a.must(worker.Commit())
				expect("it has sent the row", "3")
				expect("all are handed out")
			})
		})
	}
}
