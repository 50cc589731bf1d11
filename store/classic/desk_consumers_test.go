package classic_test

import (
	"database/sql"
	"testing"

	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/inbox/inboxtest"
	"github.com/postrider/postrider/store/classic"
)

// TestDeskOfConsumers runs the suite of inboxes with the desk in the place of what consumers themselves have.
func TestDeskOfConsumers(t *testing.T) {
	t.Parallel()
	db := newInboxDatabase(t)
	d := need(classic.NewDesk(db, mysqlConfig))(t)
	inboxtest.Run(t, func(t testing.TB) inboxtest.Subject[*sql.Tx] {
		mustExec(t, db, "DELETE FROM marks", "DELETE FROM postrider_inbox", "DELETE FROM postrider_inbox_aside",
			"DELETE FROM postrider_inbox_turns", "DELETE FROM postrider_consumers")
		s := inboxSubject(t, db, mysqlConfig)
		s.Letters = d
		return s
	})
	g, err := d.Gauges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts, err := d.Count(t.Context(), desk.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	aside := 0
	for _, c := range g.Consumers {
		aside += c.Aside.Scheduled + c.Aside.Retry + c.Aside.Waiting + c.Aside.Dead + c.Aside.Parked
		if !c.Last.IsZero() && c.Last.Before(c.Created) {
			t.Errorf("the consumer %+v recorded something before there was one", c)
		}
	}
	for _, n := range counts {
		aside -= n
	}
	if aside != 0 || len(g.Consumers) == 0 {
		t.Errorf("the consumers are %+v, and set aside are %v", g.Consumers, counts)
	}
}
