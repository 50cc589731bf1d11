package e2e_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
)

// TestSuspectMessage checks that a message that crashes every relay is detected and deferred, and
// that everything else arrives.
func TestSuspectMessage(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), postgres.Layout{Shards: 2})
	for range 20 {
		for _, keys := range [][]string{{"a", "b", "c", "d"}, {"e", "f", "g", "h"}} {
			if _, err := s.commit(keys...); err != nil {
				t.Fatal(err)
			}
		}
	}
	ids, err := s.commit("suspect")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.commit("a", "b", "c", "d", "e", "f"); err != nil {
		t.Fatal(err)
	}
	relays := s.relays(fleet.Config{Lease: time.Second, KillKey: "suspect"}, 1)
	operator := s.db.Admin()
	deaths := 0
	took, ok := s.eventually(time.Minute, func() bool {
		if relays.Ended(0) {
			deaths++
			relays.Restart(0)
		}
		list, err := operator.List(t.Context(), admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, nil, 10)
		return err == nil && len(list) == 1 && list[0].ID == ids[0]
	})
	t.Logf("deferred after %d deaths, in %v", deaths, took.Round(100*time.Millisecond))
	if !ok || deaths > 8 {
		t.Fatalf("%d relays died over one message", deaths)
	}
	if n, err := operator.Act(t.Context(), admin.By{Who: "test"}, admin.Discard, admin.Filter{ID: ids[0]}, 1); n != 1 || err != nil {
		t.Fatalf("discarded %d, %v", n, err)
	}
	if _, err := s.pool.Exec(t.Context(), "DELETE FROM "+s.cfg.Schema+".facts WHERE key = 'suspect'"); err != nil {
		t.Fatal(err)
	}
	s.mustBeClean(s.settle(20*time.Second), relays)
}
