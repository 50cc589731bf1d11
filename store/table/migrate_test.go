package table_test

import (
	"sync"
	"testing"

	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestMigrate goes up with four at once, and all the way down.
func TestMigrate(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		db, err := table.Open(s.DB, table.Config{Dialect: s.Dialect, Prefix: "own_"})
		if err != nil {
			t.Fatal(err)
		}
		m := db.Migrator()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := m.Up(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if from, err := m.Up(t.Context()); err != nil || from != table.SchemaVersion(s.Dialect) {
			t.Errorf("the tables are at version %d, and %v; want %d", from, err, table.SchemaVersion(s.Dialect))
		}
		if err := m.Down(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Up(t.Context()); err != nil {
			t.Errorf("after going down to nothing: %v", err)
		}
	})
}
