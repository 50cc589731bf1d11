package main

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestRebase(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		c := newCLI(t, dsn)
		c.must("migrate", "up")
		if _, err := c.store().Open(t.Context(), "f", postrider.Member{Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		c.enqueue(4)
		if at := decode[rebasing](t, c.must("rebase", "--yes", "--json")); at.Foreign || at.Done {
			t.Errorf("at home: %+v", at)
		}

		c.exec("UPDATE @schema@.identity SET system_identifier = 1") // as after a restore in another cluster
		if plan := c.must("rebase", "--dry-run"); !strings.Contains(plan, "yes") {
			t.Errorf("plan: %s", plan)
		}
		if r := c.run("rebase"); r.code != exitUsage || !strings.Contains(r.err, "--yes") {
			t.Errorf("in a script: %+v", r)
		}
		c.answer = "no\n"
		if r := c.run("rebase"); r.code != exitFailure {
			t.Errorf("after no: %+v", r)
		}
		c.answer = ""
		done := decode[rebasing](t, c.must("rebase", "--yes", "--json"))
		if !done.Done || len(done.Feeds) != 1 || done.Feeds[0] != (postgres.Rebased{Feed: "f", Unsettled: 4}) {
			t.Errorf("rebased: %+v", done)
		}
		if again := c.must("rebase", "--dry-run"); !strings.Contains(again, "no") {
			t.Errorf("after it: %s", again)
		}
	})
}
