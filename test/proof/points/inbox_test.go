package points

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// The type of a message determines its handler: all write an effect, and some fail after that.
const (
	well  = "point"
	shaky = "point.shaky" // fails twice
	bad   = "point.bad"   // always fails
	long  = "point.long"  // takes so long that the consumer must tell the broker
)

// runInbox runs a consumer process.
func runInbox(ctx context.Context, p part, gate *tap.Gate) error {
	pool, db, err := p.database(ctx, gate)
	if err != nil {
		return err
	}
	defer pool.Close()
	in, err := inbox.New(db.Inbox(), p.Name, inbox.Config{
		Retry: retry.Policy{Pauses: slices.Repeat([]time.Duration{20 * time.Millisecond}, 3)}, Poll: 50 * time.Millisecond, Retriers: 1, Logger: p.logger(),
	})
	if err != nil {
		return err
	}
	effect := func(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+p.Schema+".effects (of, payload) VALUES ($1, $2)", p.Name, string(m.Payload))
		return err
	}
	if p.Batch {
		in.HandleBatch("*", func(ctx context.Context, tx pgx.Tx, msgs []postrider.Message) error {
			for _, m := range msgs {
				if err := effect(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		})
	} else {
		in.Handle(well, effect)
	}
	in.Handle(shaky, func(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
		var n int
		if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT nextval('%s.attempt_%s')", p.Schema, suffix(p.Name))).Scan(&n); err != nil {
			return err
		}
		if err := effect(ctx, tx, m); err != nil {
			return err
		}
		if n <= 2 {
			return errors.New("shaky")
		}
		return nil
	})
	in.Handle(bad, func(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
		return errors.Join(effect(ctx, tx, m), errors.New("bad"))
	})
	in.Handle(long, func(ctx context.Context, tx pgx.Tx, m postrider.Message) error {
		time.Sleep(lease / 2)
		return effect(ctx, tx, m)
	})
	consumer, err := p.consumer(p.Topic, gate)
	if err != nil {
		return err
	}
	return in.Run(ctx, consumer)
}

func suffix(name string) string { return name[strings.LastIndex(name, "-")+1:] }

// counter prepares cases for consumers, all of which share one schema.
func (s *servers) counter(t *testing.T) func(t *testing.T, name string) *world {
	cfg := pgtest.Schema(t, s.pool, postgres.Layout{})
	yard := s.world(t, "", cfg)
	yard.exec("CREATE TABLE @.effects (n bigserial, of text, payload text)")
	yard.exec("CREATE INDEX ON @.effects (of)")
	return func(t *testing.T, name string) *world {
		w := s.world(t, name, cfg)
		w.exec("CREATE SEQUENCE @.attempt_" + suffix(name))
		return w
	}
}

// consumers returns the configuration of consumers.
func (w *world) consumers() part {
	p := w.part("inbox")
	p.Topic = w.broker.topic()
	// How often the broker is told that handling takes longer depends on timing.
	p.Limits = map[string]int{"write the effect": 3, "commit after: write the effect": 3, "still working": 0}
	return p
}

// publish sends messages of a key to the broker, and records the expected effects.
func (w *world) publish(kind string, msgs ...postrider.Message) {
	w.t.Helper()
	for i := range msgs {
		msgs[i].Type = kind
		if kind != bad {
			w.committed = append(w.committed, string(msgs[i].Payload))
		}
	}
	w.send(msgs)
}

// send sends messages to the broker.
func (w *world) send(msgs []postrider.Message) {
	w.t.Helper()
	var pub postrider.Publisher
	var err error
	switch broker, url := w.broker.address(); broker {
	case "rabbitmq":
		pub, err = rabbitmq.NewPublisher(rabbitmq.Config{URL: url})
	default:
		pub, err = nats.NewPublisher(nats.Config{URL: url})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer pub.Close()
	if errs := pub.Publish(w.ctx, msgs); errs != nil {
		w.t.Fatal(errors.Join(errs...))
	}
}

// several returns messages of several keys with one number.
func (w *world) several(n int, keys ...string) (msgs []postrider.Message) {
	for _, key := range keys {
		msgs = append(msgs, message(w.broker.topic(), key, n))
	}
	return msgs
}

// untilDone waits for all effects.
func (w *world) untilDone() {
	w.t.Helper()
	w.until("all effects are there", func() bool {
		return w.number("SELECT count(DISTINCT payload) FROM @.effects WHERE of = $1", w.name) >= len(w.committed)
	})
}

// untilTaken waits until the broker has nothing left to deliver.
func (w *world) untilTaken() {
	w.t.Helper()
	w.until("everything is acknowledged", func() bool {
		left, err := w.broker.left(w.ctx)
		if err != nil && w.ctx.Err() == nil {
			w.t.Fatal(err)
		}
		return left == 0
	})
}

// inboxScenario has messages whose handlers succeed; some messages arrive twice.
func inboxScenario(name string, open func(t *testing.T, name string) *world, place func(t *testing.T, name string) destination) *scenario {
	return &scenario{
		name: name,
		open: func(t *testing.T, name string) *world {
			w := open(t, name)
			w.broker = place(t, name)
			return w
		},
		part: func(w *world) part {
			p := w.consumers()
			p.Limits["still working"] = 1 // one message takes that long
			return p
		},
		before: func(w *world) {
			msgs := w.several(1, "a", "b")
			w.publish(well, msgs...)
			w.twice = msgs[:1]
		},
		work: func(w *world) {
			w.publish(long, w.several(1, "c")...)
			w.untilDone()
			time.Sleep(2 * forgets) // otherwise the stream would drop it as a duplicate
			w.send(w.twice)
			w.publish(well, w.several(2, "a", "b")...)
			w.publish(well, w.several(3, "a", "b")...)
			w.untilDone()
			w.untilTaken()
		},
		after: func(w *world) {
			w.publish(well, w.several(4, "a", "b", "c")...)
			w.untilDone()
			w.untilTaken()
		},
		alone: true,
		check: (*world).checkEffects,
	}
}

// batchScenario has a handler that processes several messages at once.
func batchScenario(open func(t *testing.T, name string) *world, place func(t *testing.T, name string) destination) *scenario {
	s := inboxScenario("inbox with batches", open, place)
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	s.part = func(w *world) part {
		p := w.consumers()
		p.Batch = true
		return p
	}
	s.before = func(w *world) {
		w.twice = w.several(1, many...)
		w.publish(well, w.twice...)
	}
	s.work = func(w *world) {
		w.untilDone()
		time.Sleep(2 * forgets)
		w.send(w.twice)
		w.publish(well, w.several(2, many...)...)
		w.publish(well, w.several(3, many...)...)
		w.untilDone()
		w.untilTaken()
	}
	return s
}

// deferScenario has messages whose handlers fail, one of them permanently.
func deferScenario(open func(t *testing.T, name string) *world, place func(t *testing.T, name string) destination) *scenario {
	s := inboxScenario("inbox with failures", open, place)
	s.part = (*world).consumers
	s.before = func(w *world) {
		w.publish(shaky, w.several(1, "a")...)
		w.publish(bad, w.several(1, "b")...)
		w.publish(well, w.several(2, "a", "b")...)
		w.publish(well, w.several(1, "c")...)
	}
	s.work = func(w *world) {
		feed := inbox.Feed(w.name)
		w.until("a dead letter", func() bool {
			return w.number("SELECT count(*) FROM @.deferred WHERE feed = $1 AND status = 'dead'", feed) == 1
		})
		w.untilTaken()
		n, err := w.db.Admin().Act(w.ctx, admin.By{Who: "ann"}, admin.Discard, admin.Filter{Feed: feed}, 0)
		if n != 1 || err != nil {
			w.t.Fatalf("%d dead letters were discarded: %v", n, err)
		}
		w.untilDone()
		w.until("nothing is deferred", func() bool { return w.number("SELECT count(*) FROM @.deferred WHERE feed = $1", feed) == 0 })
	}
	return s
}

// checkEffects checks that every message had its effect once, in the order of its key, and that
// nothing is left. If one process continues while another has replaced it, both are consumers of
// one group: then order is not guaranteed.
func (w *world) checkEffects(way tap.Way) {
	w.t.Helper()
	got := make(map[string][]string)
	for _, payload := range w.texts("SELECT payload FROM @.effects WHERE of = $1 ORDER BY n", w.name) {
		key, _, _ := strings.Cut(payload, " ")
		got[key] = append(got[key], payload)
	}
	want := make(map[string][]string)
	for _, payload := range w.committed {
		key, _, _ := strings.Cut(payload, " ")
		want[key] = append(want[key], payload)
	}
	for key := range got {
		if want[key] == nil {
			w.t.Errorf("effects of nothing: %q", got[key])
		}
	}
	for key, payloads := range want {
		if way == tap.Delay {
			slices.Sort(got[key])
		}
		if !slices.Equal(got[key], payloads) {
			w.t.Errorf("effects of key %s: %q, want %q", key, got[key], payloads)
		}
	}
	if n := w.number("SELECT count(*) FROM @.deferred WHERE feed = $1", inbox.Feed(w.name)); n != 0 {
		w.t.Errorf("%d messages are deferred", n)
	}
}
