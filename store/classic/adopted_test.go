package classic_test

import (
	"testing"

	"github.com/postrider/postrider/store/classic"
	"github.com/postrider/postrider/store/classic/classictest"
	"github.com/postrider/postrider/store/storetest"
)

// TestStoreOverAdoptedTable runs the suite over a table that is not ours: its rows are claimed before they are sent, its shards are
// computed, and what is deferred is found by a look at our own table. Tables on PostgreSQL are played through in test/adopt.
func TestStoreOverAdoptedTable(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		s := classictest.MariaDB(t)
		theirs := classic.Config{Dialect: s.Dialect, Prefix: "theirs_"} // for its outbox, and those who write there
		classictest.Migrate(t, s, theirs)
		native := classic.Native(theirs.Prefix)
		ours := classic.Config{Dialect: s.Dialect, Layout: classic.Layout{
			Table: native.Table, ID: "id", OrderBy: []string{"id"}, Columns: native.Columns,
			State: classic.State{
				Status: "status", Pending: []string{"pending"}, Processing: "processing", Published: "sent", Failed: "failed", Dead: "dead",
				Attempts: "attempts", NextAttempt: "available_at", LastError: "last_error", PublishedAt: "published_at",
			},
		}}
		classictest.Migrate(t, s, ours)
		return storetest.Harness{
			Store:   newStore(t, s, ours),
			Shards:  8,
			OneFeed: true,
			Begin:   func(t *testing.T) storetest.Tx { return begin(t, s, theirs) },
		}
	})
}
