package adopt_test

import (
	"strings"
	"testing"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt/tolog"
	"github.com/postrider/postrider/test/proof/history"
)

// TestBack moves an application back from the log to its table under load, as the documentation
// describes. Every key keeps its order.
func TestBack(t *testing.T) {
	const messages = 3000
	s := newShop(t, 50)
	m, err := tolog.New(s.pool, tolog.Config{Classic: s.classicConfig, Log: s.logConfig, Feed: "live"})
	if err != nil {
		t.Fatal(err)
	}
	by := admin.By{Who: "test"}
	s.classic("classic1")
	s.log("log1")
	if err := m.Run(t.Context(), by, nil); err != nil {
		t.Fatal(err)
	}
	w := s.write(4, messages) // all writers use the old statement again
	w.reach(messages / 2)
	db, err := table.Open(s.server.DB, s.classicConfig)
	if err != nil {
		t.Fatal(err)
	}
	operator := db.Admin()
	if err := operator.PauseFeed(t.Context(), by, "default", true); err != nil {
		t.Fatal(err)
	}
	until(t, "the table's relay has let go", func() bool {
		var held int
		err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM postrider_leases WHERE holder IS NOT NULL").Scan(&held)
		return err == nil && held == 0
	})
	_, finish, err := m.Script(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for operator := range strings.SplitSeq(strings.TrimSpace(finish), ";") {
		if _, err := s.pool.Exec(t.Context(), operator); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the log has nothing to deliver", func() bool {
		feeds, err := s.db.Admin().ListFeeds(t.Context())
		return err == nil && len(feeds) == 1 && feeds[0].Pending+feeds[0].Deferred == 0
	})
	if err := operator.PauseFeed(t.Context(), by, "default", false); err != nil {
		t.Fatal(err)
	}
	w.wait()
	committed := w.committed()
	until(t, "everything has arrived", func() bool { return s.sink.different() >= len(committed) })
	verdict := history.Compare(committed, s.sink.deliveries())
	t.Log(verdict, "; of the table:", s.sink.from("classic"), ", of the log:", s.sink.from("log"))
	if !verdict.Clean() || len(verdict.Duplicates) > 0 || s.sink.from("classic") == 0 || s.sink.from("log") == 0 {
		t.Error("want all, once, in order, and some from either")
	}
}
