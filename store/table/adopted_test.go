package table_test

import (
	"testing"

	"github.com/postrider/postrider/store/storetest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestStoreOverAdoptedTable runs the suite over a table that is not ours: its rows are claimed before they are sent, its shards are
// computed, and what is deferred is found by a look at our own table. Tables on PostgreSQL are played through in test/adopt.
func TestStoreOverAdoptedTable(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		s := tabletest.MariaDB(t)
		theirs := table.Config{Dialect: s.Dialect, Prefix: "theirs_"} // for its outbox, and those who write there
		tabletest.Migrate(t, s, theirs)
		native := table.Native(theirs.Prefix)
		ours := table.Config{Dialect: s.Dialect, Layout: table.Layout{
			Table: native.Table, ID: "id", OrderBy: []string{"id"}, Columns: native.Columns,
			State: table.State{
				Status: "status", Pending: []string{"pending"}, Processing: "processing", Published: "sent", Failed: "failed", Dead: "dead",
				Attempts: "attempts", NextAttempt: "available_at", LastError: "last_error", PublishedAt: "published_at",
			},
		}}
		tabletest.Migrate(t, s, ours)
		return storetest.Harness{
			Store:   newStore(t, s, ours),
			Shards:  8,
			OneFeed: true,
			Begin:   func(t *testing.T) storetest.Tx { return begin(t, s, theirs) },
		}
	})
}
