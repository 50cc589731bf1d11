package points

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// refusedScenario has a message that the destination refuses, those of its key behind it, a scheduled one, and an operator who has
// the dead letter sent again when the reason is gone.
func refusedScenario(s *servers, name string, place func(t *testing.T, name string) destination, change func(*part)) *scenario {
	return &scenario{
		name: name,
		open: func(t *testing.T, name string) *world {
			w := s.log(t, name, postgres.Layout{Shards: 2, Slots: 3})
			w.broker = place(t, name)
			return w
		},
		part: func(w *world) part {
			p := w.relays()
			change(&p)
			return p
		},
		before: func(w *world) {
			w.enqueue([]string{"a"}, 1, w.broker.nowhere())
			w.enqueue([]string{"a"}, 2, w.broker.topic())
			w.round(2)
			w.schedule()
		},
		work: func(w *world) {
			w.until("a dead letter", func() bool { return w.number("SELECT count(*) FROM @.deferred WHERE status = 'dead'") == 1 })
			w.untilSettled()
			if err := w.broker.open(w.ctx); err != nil {
				w.t.Fatal(err)
			}
			n, err := w.db.Admin().Act(w.ctx, admin.By{Who: "ann"}, admin.Retry, admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, 0)
			if n != 1 || err != nil {
				w.t.Fatalf("%d dead letters were sent again: %v", n, err)
			}
			w.untilNothingDeferred()
			w.round(3)
			w.untilSettled()
			w.untilSeen("balance", 2)
		},
		after: func(w *world) {
			w.round(4)
			w.untilSettled()
			w.untilNothingDeferred()
		},
		check: (*world).checkRelay,
	}
}

func (w *world) untilNothingDeferred() {
	w.t.Helper()
	w.until("nothing is deferred", func() bool { return w.number("SELECT count(*) FROM @.deferred") == 0 })
}

// schedule enqueues a message that is due a little later.
func (w *world) schedule() {
	w.t.Helper()
	m := message(w.broker.topic(), "scheduled", 1)
	m.DeliverAfter = time.Now().Add(200 * time.Millisecond)
	if err := pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error { return w.db.Outbox().Enqueue(w.ctx, tx, m) }); err != nil {
		w.t.Fatal(err)
	}
	w.committed = append(w.committed, string(m.Payload))
}

// suspectScenario begins when two relays have died, one after the other, over the first messages.
func suspectScenario(s *servers) *scenario {
	return &scenario{
		name: "relay after two crashes",
		open: func(t *testing.T, name string) *world {
			w := s.log(t, name, postgres.Layout{Shards: 1, Slots: 3})
			w.broker = s.stream(t, name)
			return w
		},
		part: func(w *world) part {
			p := w.relays()
			p.Only, p.Limits = true, map[string]int{"suspect": 3, "publish": 3, "settle": 2, "balance": 1, "release": 1}
			return p
		},
		before: func(w *world) {
			w.round(1)
			dying := w.relays()
			dying.Relay.Lease = lease
			dying.Point, dying.Way = "publish 1", tap.KillBefore
			for range 2 {
				<-start(w.t, dying).done
			}
		},
		work: func(w *world) {
			w.untilSettled()
			w.round(2)
			w.untilSettled()
		},
		after: func(w *world) {
			w.round(3)
			w.untilSettled()
		},
		check: (*world).checkRelay,
	}
}

// sliceScenario has a tenant with so much that it is read apart from the others, and together with them again in the end.
func sliceScenario(s *servers) *scenario {
	return &scenario{
		name: "relay with a tenant that holds up the others",
		open: func(t *testing.T, name string) *world {
			w := s.log(t, name, postgres.Layout{Shards: 1, Slots: 3})
			w.broker = s.stream(t, name)
			return w
		},
		part: func(w *world) part {
			p := w.relays()
			p.Relay.ReadAhead, p.Relay.BatchSize = 40, 1
			p.Slow = 30 * time.Millisecond
			p.Only, p.Limits = true, map[string]int{"release": 2, "split": 1, "merge": 1, "settle": 1}
			return p
		},
		before: func(w *world) {
			err := pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error {
				for n := range 100 {
					m := message(w.broker.topic(), fmt.Sprint("flood", n%10), n)
					m.TenantID = "flood"
					if err := w.db.Outbox().Enqueue(w.ctx, tx, m); err != nil {
						return err
					}
					w.committed = append(w.committed, string(m.Payload))
				}
				return nil
			})
			if err != nil {
				w.t.Fatal(err)
			}
		},
		work: func(w *world) {
			w.untilSeen("split", 1)
			w.round(1)
			w.untilSettled()
			w.untilSeen("merge", 1)
			w.until("no slice is left", func() bool { return w.number("SELECT count(*) FROM @.slices") == 0 })
		},
		after: func(w *world) {
			w.round(2)
			w.untilSettled()
		},
		check: (*world).checkRelay,
	}
}

// reclaimScenario begins with messages that all feeds have passed, in the slot that will be written next.
func reclaimScenario(s *servers) *scenario {
	return &scenario{
		name: "relay that empties a slot",
		open: func(t *testing.T, name string) *world {
			w := s.log(t, name, postgres.Layout{Shards: 2, Slots: 3})
			w.broker = s.stream(t, name)
			return w
		},
		part: func(w *world) part {
			p := w.relays()
			p.Relay.MaintainInterval = lease / 4
			p.Only, p.Limits = true, map[string]int{"reclaim": 1, "sweep": 1}
			return p
		},
		before: func(w *world) {
			w.round(1)
			other := start(w.t, w.relays())
			w.untilSettled()
			if err := other.stop(timeout); err != nil {
				w.t.Fatal(err)
			}
			w.exec("UPDATE @.messages SET slot = (@.slot_at(clock_timestamp()) + 1) % @.slot_count()")
			w.round(2)
		},
		work: func(w *world) {
			w.untilSettled()
			w.until("the slot is empty", func() bool {
				return w.number("SELECT count(*) FROM @.messages WHERE slot <> @.slot_at(clock_timestamp())") == 0
			})
			w.untilSeen("sweep", 1)
		},
		after: func(w *world) {
			w.round(3)
			w.untilSettled()
			if n := w.number("SELECT count(*) FROM @.messages"); n != 2*2*len(keys) {
				w.t.Errorf("the log has %d messages, want those of two rounds", n)
			}
		},
		check: (*world).checkRelay,
	}
}
