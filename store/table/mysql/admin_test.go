package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox/inboxtest"
	"github.com/postrider/postrider/store/table/mysql"
)

// TestAdminOfConsumers runs the suite of inboxes with the admin API in the place of what consumers themselves have.
func TestAdminOfConsumers(t *testing.T) {
	t.Parallel()
	db := newInboxDatabase(t)
	d := must(mysql.Open(db, mysql.Config{}))(t).Admin()
	inboxtest.Run(t, func(t testing.TB) inboxtest.Subject[*sql.Tx] {
		mustExec(t, db, "DELETE FROM marks", "DELETE FROM postrider_inbox", "DELETE FROM postrider_inbox_deferred",
			"DELETE FROM postrider_inbox_turns", "DELETE FROM postrider_consumers")
		s := inboxSubject(t, db, mysql.Config{})
		s.DeadLetters = d
		return s
	})
	g, err := d.Gauges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts, err := d.Count(t.Context(), admin.Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, c := range g.Consumers {
		left += c.Deferred.Scheduled + c.Deferred.Retry + c.Deferred.Waiting + c.Deferred.Dead + c.Deferred.Parked
		if !c.Last.IsZero() && c.Last.Before(c.Created) {
			t.Errorf("the consumer %+v recorded something before there was one", c)
		}
	}
	for _, n := range counts {
		left -= n
	}
	if left != 0 || len(g.Consumers) == 0 {
		t.Errorf("the consumers are %+v, and deferred are %v", g.Consumers, counts)
	}
}
