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
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// forgets is the deduplication window of a stream.
const forgets = 100 * time.Millisecond

// runRelay runs a relay process.
func runRelay(ctx context.Context, p part, gate *tap.Gate) error {
	pool, db, err := p.database(ctx, gate)
	if err != nil {
		return err
	}
	defer pool.Close()
	pub, err := p.publisher(gate)
	if err != nil {
		return err
	}
	defer pub.Close()
	if p.Slow > 0 {
		pub = slow{pub, p.Slow}
	}
	p.Relay.Logger = p.logger()
	r, err := relay.New(db.Feeds(), refusing{pub}, p.Relay)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// refusing is a publisher whose destination rejects messages to a missing name, so that they become
// dead letters.
type refusing struct{ postrider.Publisher }

func (r refusing) KeepsOrder() bool {
	keeper, ok := r.Publisher.(broker.OrderKeeper)
	return ok && keeper.KeepsOrder()
}

func (r refusing) Publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := r.Publisher.Publish(ctx, msgs)
	for i, err := range errs {
		if err != nil && postrider.ScopeOf(err) == postrider.ScopeName {
			errs[i] = postrider.Permanent(err)
		}
	}
	return errs
}

// slow is a publisher with a slow destination.
type slow struct {
	postrider.Publisher
	by time.Duration
}

func (s slow) Publish(ctx context.Context, msgs []postrider.Message) []error {
	time.Sleep(s.by)
	return s.Publisher.Publish(ctx, msgs)
}

// log creates a schema.
func (s *servers) log(t *testing.T, name string, layout postgres.Layout) *world {
	t.Helper()
	return s.world(t, name, pgtest.Schema(t, s.pool, layout))
}

// relays returns the configuration of the relays in most scenarios.
func (w *world) relays() part {
	p := w.part("relay")
	p.Relay = relay.Config{
		Lease: w.lease, BalanceInterval: lease / 5, SettleInterval: lease / 50, PollMax: 10 * time.Millisecond,
		Outage: retry.Policy{First: 20 * time.Millisecond, Most: 100 * time.Millisecond}, MaintainInterval: time.Hour,
		Retry: retry.Policy{Attempts: 2, Pauses: []time.Duration{50 * time.Millisecond}},
	}
	return p
}

// relayScenario is the ordinary work: several rounds of messages, transactions that are rolled
// back, one that commits late, and housekeeping.
func relayScenario(s *servers, name string, place func(t *testing.T, name string) destination) *scenario {
	return &scenario{
		name: name,
		open: func(t *testing.T, name string) *world {
			w := s.log(t, name, postgres.Layout{Shards: 2, Slots: 3})
			w.broker = place(t, name)
			return w
		},
		part: func(w *world) part {
			p := w.relays()
			p.Relay.MaintainInterval, p.Relay.Canary = lease/4, lease/4
			p.Limits = map[string]int{"begin": 4} // of reclaim, sweep, freeze, and the canary
			return p
		},
		before: func(w *world) {
			w.beginLate()
			w.round(1)
		},
		work: func(w *world) {
			w.untilSettled()
			w.round(2)
			w.untilSettled()
			w.commitLate()
			w.round(3)
			w.untilSettled()
			w.untilSeen("balance", 2)
			for _, name := range []string{"reclaim", "sweep", "ask for a slot to freeze", "canary"} {
				w.untilSeen("commit after: "+name, 1)
			}
		},
		after: func(w *world) {
			w.round(4)
			w.untilSettled()
		},
		check: (*world).checkRelay,
	}
}

// keys are those of a round, over both shards.
var keys = []string{"a", "b", "c", "d", "e"}

// round enqueues messages of all keys, in several transactions of which one is rolled back.
func (w *world) round(n int) {
	w.t.Helper()
	for _, some := range [][]string{keys[:2], keys[2:]} {
		w.enqueue(some, 2*n-1, w.broker.topic())
		w.enqueue(some, 2*n, w.broker.topic())
	}
	undone := errors.New("undone")
	err := pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error {
		if err := w.db.Outbox().Enqueue(w.ctx, tx, message(w.broker.topic(), "phantom", n)); err != nil {
			return err
		}
		return undone
	})
	if !errors.Is(err, undone) {
		w.t.Fatal(err)
	}
}

// enqueue commits one message of each key, with a number.
func (w *world) enqueue(keys []string, n int, topic string) {
	w.t.Helper()
	err := pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error { return w.put(tx, keys, n, topic) })
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(tx pgx.Tx, keys []string, n int, topic string) error {
	for _, key := range keys {
		m := message(topic, key, n)
		if err := w.db.Outbox().Enqueue(w.ctx, tx, m); err != nil {
			return err
		}
		w.committed = append(w.committed, string(m.Payload))
	}
	return nil
}

// beginLate begins a transaction that commits after later ones were read.
func (w *world) beginLate() {
	tx, err := w.pool.Begin(w.ctx)
	if err == nil {
		err = w.put(tx, []string{"late"}, 1, w.broker.topic())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.late = tx
}

func (w *world) commitLate() {
	if err := w.late.Commit(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	w.enqueue([]string{"late"}, 2, w.broker.topic())
}

// untilSettled waits until the feed has delivered everything committed.
func (w *world) untilSettled() {
	w.t.Helper()
	w.until("everything is settled", func() bool {
		return w.number(`SELECT CASE WHEN EXISTS (SELECT FROM @.feeds WHERE name = 'default')
			THEN (SELECT pending FROM @.pending('default', 1000)) ELSE 1 END`) == 0
	})
}

// checkRelay checks that everything has arrived and nothing else, each key in order, and that the
// ledger is valid.
func (w *world) checkRelay(way tap.Way) {
	got, err := w.broker.receipts(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.checkReceipts(got, way)
	w.checkLedger()
}

func (w *world) checkReceipts(got []string, way tap.Way) {
	w.t.Helper()
	times := make(map[string]int)
	first := make(map[string][]string) // by key
	for _, payload := range got {
		if times[payload]++; times[payload] == 1 {
			key, _, _ := strings.Cut(payload, " ")
			first[key] = append(first[key], payload)
		}
	}
	want := make(map[string][]string)
	for _, payload := range w.committed {
		key, _, _ := strings.Cut(payload, " ")
		want[key] = append(want[key], payload)
		if times[payload] == 0 {
			w.t.Errorf("lost: %s", payload)
		}
		if times[payload] > 1 && way == "" {
			w.t.Errorf("%s arrived %d times, and nothing had gone wrong", payload, times[payload])
		}
		if times[payload] > 3 {
			w.t.Errorf("%s arrived %d times", payload, times[payload])
		}
	}
	for key, payloads := range first {
		if want[key] == nil {
			w.t.Errorf("phantom: %q", payloads)
		} else if !slices.Equal(payloads, want[key]) {
			w.t.Errorf("order of key %s: %q, want %q", key, payloads, want[key])
		}
	}
}

// checkLedger checks that rows are consecutive, that no cursor went back, that no owner was
// replaced before it had released the shard or its lease had expired, and that finally everything
// is settled and released.
func (w *world) checkLedger() {
	w.t.Helper()
	for what, sql := range map[string]string{
		"gaps in the numbers": `SELECT count(*) FROM (SELECT n - lag(n) OVER w AS step FROM @.checkpoints
			WINDOW w AS (PARTITION BY feed, shard ORDER BY n)) s WHERE step <> 1`,
		"cursors that went back": `SELECT count(*) FROM (SELECT lo, lag(lo) OVER w AS before FROM @.checkpoints
			WINDOW w AS (PARTITION BY feed, shard ORDER BY n)) s WHERE lo < before`,
		"holders that were replaced too soon": `SELECT count(*) FROM (SELECT member, at, lag(member) OVER w AS whose, lag(released) OVER w AS free,
			lag(until) OVER w AS lease FROM @.checkpoints WINDOW w AS (PARTITION BY feed, shard ORDER BY n)) s
			WHERE whose IS NOT NULL AND NOT free AND member <> whose AND at < lease`,
		"shards that are not released": `SELECT count(*) FROM @.cursors WHERE NOT released`,
		"messages that are pending":    `SELECT pending FROM @.pending('default', 1000)`,
		"messages that are deferred":   `SELECT count(*) FROM @.deferred`,
	} {
		if n := w.number(sql); n != 0 {
			w.t.Errorf("%d %s", n, what)
		}
	}
	if w.t.Failed() {
		w.t.Log(fmt.Sprint("the ledger:\n", strings.Join(w.texts(`SELECT concat_ws(' ', shard, n, member, at, until, CASE WHEN released THEN 'released' END, lo)
			FROM @.checkpoints ORDER BY shard, n`), "\n")))
	}
}
