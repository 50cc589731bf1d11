package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestRebase(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		c := newCLI(t, dsn)
		c.must("migrate", "up")
		if _, err := c.database().Feeds().Open(t.Context(), "f", feeds.Member{Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		c.enqueue(4)
		if at := decode[rebasing](t, c.must("rebase", "--yes", "--json")); at.Foreign || at.Done {
			t.Errorf("at home: %+v", at)
		}

		c.exec("UPDATE @schema@.identity SET system_identifier = 1") // as after a restore in another cluster
		announced := postgres.Rebased{Feed: "f", Unsettled: 4}
		if plan := decode[rebasing](t, c.must("rebase", "--dry-run", "--json")); !plan.Foreign || plan.Done || len(plan.Feeds) != 1 || plan.Feeds[0] != announced {
			t.Errorf("plan: %+v", plan)
		}
		if r := c.run("rebase"); r.code != exitUsage || !strings.Contains(r.err, "--yes") {
			t.Errorf("in a script: %+v", r)
		}
		c.answer = "no\n"
		if r := c.run("rebase"); r.code != exitFailure || !strings.Contains(r.err, "send 4 messages (f 4)?") {
			t.Errorf("after no: %+v", r)
		}
		c.answer = ""
		done := decode[rebasing](t, c.must("rebase", "--yes", "--json", "--reason", "restored"))
		if !done.Done || len(done.Feeds) != 1 || done.Feeds[0] != announced {
			t.Errorf("rebased: %+v", done)
		}
		if records := c.must("audit", "ls", "--json"); !strings.Contains(records, `"action":"rebase","why":"restored"`) {
			t.Errorf("the record: %s", records)
		}
		if again := decode[rebasing](t, c.must("rebase", "--dry-run", "--json")); again.Foreign {
			t.Errorf("after it: %+v", again)
		}
		c.exec("UPDATE @schema@.identity SET home = 'production'") // as a relay there has left it
		if r := c.run("status", "--home", "staging"); !strings.Contains(r.out, "rebase --dry-run --schema "+c.schema+" --home staging") {
			t.Errorf("in a copy: %s", r.out)
		}
		if plan := decode[rebasing](t, c.must("rebase", "--dry-run", "--json", "--home", "staging")); !plan.Foreign || len(plan.Feeds) != 1 {
			t.Errorf("plan of a copy: %+v", plan)
		}
	})
}
