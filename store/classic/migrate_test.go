package classic_test

import (
	"sync"
	"testing"

	"github.com/postrider/postrider/store/classic"
	"github.com/postrider/postrider/store/classic/classictest"
)

// TestMigrate goes up with four at once, and all the way down.
func TestMigrate(t *testing.T) {
	t.Parallel()
	classictest.Each(t, func(t *testing.T, open func(testing.TB) classictest.Server) {
		s := open(t)
		db, err := classic.OpenTable(s.DB, classic.Config{Dialect: s.Dialect, Prefix: "own_"})
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
		if from, err := m.Up(t.Context()); err != nil || from != classic.SchemaVersion(s.Dialect) {
			t.Errorf("the tables are at version %d, and %v; want %d", from, err, classic.SchemaVersion(s.Dialect))
		}
		if err := m.Down(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Up(t.Context()); err != nil {
			t.Errorf("after going down to nothing: %v", err)
		}
	})
}
