package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

const (
	planShards = 8
	planSlots  = 8
	// descents is how many buffers a read may touch even if it finds nothing: one descent of an
	// index for each slot.
	descents = 100 + 4*planSlots
)

// TestPlans verifies that reading the log costs only what it finds, however large the log is, and
// whether the planner has no statistics, old ones or current ones.
func TestPlans(t *testing.T) {
	t.Parallel()
	large := 1_000_000
	if need.IsLong() {
		large = 5_000_000
	}
	pgtest.Each(t, func(t *testing.T, dsn string) {
		young := newPlanHouse(t, dsn)
		for _, size := range []int{0, 10_000} {
			young.grow(size)
			t.Run(fmt.Sprintf("%d, known as less", size), func(t *testing.T) { testPlans(t, young, dsn, size) })
			young.exec("ANALYZE @.messages")
			t.Run(fmt.Sprintf("%d analyzed", size), func(t *testing.T) { testPlans(t, young, dsn, size) })
		}
		unknown := newPlanHouse(t, dsn)
		for _, size := range []int{0, 10_000, large} {
			unknown.grow(size)
			t.Run(fmt.Sprintf("%d never analyzed", size), func(t *testing.T) { testPlans(t, unknown, dsn, size) })
		}
		unknown.exec("ANALYZE @.messages")
		t.Run(fmt.Sprintf("%d analyzed", large), func(t *testing.T) { testPlans(t, unknown, dsn, large) })
	})
}

// TestLedgerPlans verifies that plans made while the ledger was small do not read all of it when it
// has grown, nor rows of other feeds.
func TestLedgerPlans(t *testing.T) {
	t.Parallel()
	const feeds = 10
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newPlanHouse(t, dsn)
		h.exec("ALTER TABLE @.checkpoints SET (autovacuum_enabled = false)")
		name := h.newFeed("")
		for range feeds - 1 {
			h.newFeed("") // other feeds cost this one nothing
		}
		h.exec("ANALYZE @.checkpoints")
		var plans plans
		watched := h.watched(t, dsn, &plans)
		feed := watched.open(name)
		defer feed.Close(ctx)
		work := func() {
			if _, err := feed.Balance(ctx); err != nil {
				t.Fatal(err)
			}
			if err := watched.store.Maintain(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 { // until the server keeps its plans
			work()
		}
		h.exec(`INSERT INTO @.checkpoints (feed, shard, n, until, lo, starts, s1)
			SELECT feed, shard, n + i, until, lo, starts, s1 FROM @.cursors, generate_series(1, 1000) i`)
		plans.clear()
		work()
		buffers, _, faults := plans.inspect("checkpoints")
		t.Logf("%d buffers", buffers)
		if limit := 20 * planShards * feeds; buffers > limit { // the way down the index, for each cursor
			t.Errorf("%d buffers touched, want at most %d", buffers, limit)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	})
}

// TestReclaimPlans verifies that slot_passed, which runs under the lock, does not cost more for a
// full slot, nor with a transaction that was open all the time.
func TestReclaimPlans(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newPlanHouse(t, dsn)
		open, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer open.Rollback(t.Context())
		if _, err := open.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
		h.exec(fill)
		h.deliverAll("f")
		h.exec("ANALYZE @.messages")
		var plans plans
		if err := h.watched(t, dsn, &plans).store.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		buffers, _, faults := plans.inspect("messages_")
		t.Logf("%d buffers", buffers)
		if limit := 50; buffers > limit {
			t.Errorf("%d buffers touched, want at most %d", buffers, limit)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	})
}

func testPlans(t *testing.T, h *house, dsn string, size int) {
	// A feed that has passed everything except what was in flight.
	open, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback(t.Context())
	late, _ := messages(5)
	if err := h.outbox.Enqueue(t.Context(), open, late...); err != nil {
		t.Fatal(err)
	}
	tail := h.newFeed(`INSERT INTO @.checkpoints (feed, shard, n, released, until, lo, starts, s1)
		SELECT c.feed, c.shard, c.n + 1, true, now(), (SELECT max(seq) + 5 FROM @.messages),
		  ARRAY(SELECT (SELECT max(seq) FROM @.messages) FROM pg_snapshot_xip(pg_current_snapshot())), pg_current_snapshot()
		FROM @.cursors c WHERE c.feed = '%s' AND EXISTS (SELECT FROM @.messages)`)
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	few := len(h.enqueue(20)) + len(late)
	kinds := h.mustReadCheaply(t, dsn, "tail", tail, 500, few, descents+4*few)
	if size > 0 && len(kinds) != 1 {
		t.Errorf("tail: the indexes are %v, want one", kinds)
	}

	// A feed that has passed nothing.
	const page = 500
	first := min(size+few, planShards*page)
	h.mustReadCheaply(t, dsn, "backlog", h.newFeed(""), page, first/2, descents+planShards*page)
}

func newPlanHouse(t *testing.T, dsn string) *house {
	t.Helper()
	h := newHouse(t, dsn, postgres.Layout{Shards: planShards, Slots: planSlots, Period: still.Period})
	for slot := range planSlots { // no statistics except those that the test gathers
		h.exec(fmt.Sprintf("ALTER TABLE @.messages_%d SET (autovacuum_enabled = false)", slot))
	}
	return h
}

// grow fills the log up to a size. The oldest messages are in the slot after the current one, as in
// a ring that has turned once.
func (h *house) grow(size int) {
	h.t.Helper()
	h.exec(fmt.Sprintf(`INSERT INTO @.messages (type, key, slot)
		SELECT 't', g::text, (@.slot_at(now()) + 1 + g * %[2]d / (%[1]d + 1)) %% %[2]d FROM generate_series(
		  (SELECT count(*) FROM @.messages) + 1, %[1]d) g`, size, planSlots))
}

// newFeed opens a feed and sets its position with a statement.
func (h *house) newFeed(place string) string {
	h.t.Helper()
	name := "f" + postrider.NewID().String()
	h.open(name).Close(h.t.Context())
	if place != "" {
		h.exec(fmt.Sprintf(place, name))
	}
	return name
}

// mustReadCheaply reads once and checks the plans that were used. It returns the kinds of indexes
// in them.
func (h *house) mustReadCheaply(t *testing.T, dsn, what, name string, limit, atLeast, buffers int) map[string]bool {
	t.Helper()
	ctx := t.Context()
	var plans plans
	feed := h.watched(t, dsn, &plans).open(name)
	defer feed.Close(ctx)
	share, err := feed.Balance(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var want []feeds.Demand
	for _, shard := range share.Shards {
		want = append(want, feeds.Demand{Shard: shard, Limit: limit})
	}
	plans.clear()
	batches, err := feed.Read(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	for _, b := range batches {
		messages += len(b.Messages)
	}
	touched, kinds, faults := plans.inspect("messages_")
	t.Logf("%s: %d messages, %d buffers, limit %d", what, messages, touched, buffers)
	if messages < atLeast {
		t.Errorf("%s: %d messages, want %d", what, messages, atLeast)
	}
	if touched > buffers {
		t.Errorf("%s: %d buffers touched for %d messages, want at most %d", what, touched, messages, buffers)
	}
	for _, fault := range faults {
		t.Errorf("%s: %s", what, fault)
	}
	return kinds
}

// watched returns the same log, with a relay whose plans are reported.
func (h *house) watched(t *testing.T, dsn string, p *plans) *house {
	t.Helper()
	return openHouse(t, watchedPool(t, dsn, p), h.cfg)
}

// watchedPool returns a pool with one connection, which reports the plan of every statement, also
// inside functions.
func watchedPool(t *testing.T, dsn string, p *plans) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { p.add(n.Message) }
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `LOAD 'auto_explain';
			SET auto_explain.log_min_duration = 0;
			SET auto_explain.log_nested_statements = on;
			SET auto_explain.log_analyze = on;
			SET auto_explain.log_buffers = on;
			SET auto_explain.log_format = json;
			SET auto_explain.log_level = notice`, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// plan is a node of what auto_explain reports.
type plan struct {
	Node     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Hit      int     `json:"Shared Hit Blocks"`
	Read     int     `json:"Shared Read Blocks"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Join Filter"` // in each loop
	Plans    []plan
}

type plans struct {
	mu       sync.Mutex
	all      []plan
	compiled []string // statements that were compiled, which takes longer than all of these together
}

func (p *plans) add(notice string) {
	_, text, ok := strings.Cut(notice, "plan:\n")
	var logged struct {
		Text string `json:"Query Text"`
		Plan plan
		JIT  json.RawMessage
	}
	if !ok || json.Unmarshal([]byte(text), &logged) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, logged.Plan)
	if logged.JIT != nil {
		p.compiled = append(p.compiled, logged.Text)
	}
}

func (p *plans) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all, p.compiled = nil, nil
}

// inspect checks the statements that read a table. It returns how many buffers they touched, the
// kinds of indexes that they used, and everything that is wrong with them.
func (p *plans) inspect(table string) (buffers int, kinds map[string]bool, faults []string) {
	return p.inspectBy(table, true)
}

// inspectAll is inspect for statements that may use several indexes.
func (p *plans) inspectAll(table string) (buffers int, kinds map[string]bool, faults []string) {
	return p.inspectBy(table, false)
}

// mostCompared bounds how many non-matching pairs of rows a statement may compare: a hundred
// messages with each other.
const mostCompared = 10_000

func (p *plans) inspectBy(table string, oneIndex bool) (buffers int, kinds map[string]bool, faults []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kinds = map[string]bool{}
	for _, root := range p.all {
		indexes := map[string]bool{}
		root.walk(func(n plan) {
			if !strings.HasPrefix(n.Relation, table) || n.Node == "ModifyTable" {
				return
			}
			if n.Node != "Index Scan" && n.Node != "Index Only Scan" && n.Node != "Tid Scan" {
				faults = append(faults, n.Node+" on "+n.Relation)
			}
			kind := strings.TrimPrefix(n.Index, n.Relation)
			indexes[kind], kinds[kind] = true, true
		})
		root.walk(func(n plan) {
			if pairs := n.Loops * n.Removed; len(indexes) > 0 && pairs > mostCompared {
				faults = append(faults, fmt.Sprintf("%s compares %.0f pairs of rows in vain", n.Node, pairs))
			}
		})
		if oneIndex && len(indexes) > 1 { // the wrong one reads a whole shard
			faults = append(faults, fmt.Sprintf("one statement uses several indexes: %v", indexes))
		}
		if len(indexes) > 0 { // skip the enclosing statement, which also counts catalogue reads
			buffers += root.Hit + root.Read
		}
	}
	for _, text := range p.compiled {
		faults = append(faults, "compiled: "+text)
	}
	if buffers == 0 {
		faults = append(faults, "no plan was reported")
	}
	return buffers, kinds, faults
}

func (n plan) walk(f func(plan)) {
	f(n)
	for _, child := range n.Plans {
		child.walk(f)
	}
}

// TestHeldPlans verifies that messages held for their names cost nothing as long as these accept
// nothing, and that a probe costs as little.
func TestHeldPlans(t *testing.T) {
	t.Parallel()
	const held, limit = 10_000, 500
	const few = 2000 // it takes about 200, and catalogue lookups; a scan of all rows takes more than 10,000
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newPlanHouse(t, dsn)
		h.exec("ALTER TABLE @.deferred SET (autovacuum_enabled = false)")
		h.exec("ANALYZE @.deferred")
		var plans plans
		watched := h.watched(t, dsn, &plans)
		var share feeds.Share
		open := func() feeds.Feed {
			name := h.newFeed("")
			h.exec(fmt.Sprintf(`INSERT INTO @.deferred (feed, seq, shard, status, blocking, available_at, order_key, priority, id, type,
				  schema_version, created_at, occurred_at, payload, name)
				SELECT '%s', i, i %% %d, 'held', true, 'infinity', i::text, 0, gen_random_uuid(), 't', 1, now(), now(), '', 'name ' || i %% 2
				FROM generate_series(1, %d) i`, name, planShards, held))
			feed := watched.open(name)
			t.Cleanup(func() { feed.Close(context.Background()) })
			var err error
			if share, err = feed.Balance(ctx); err != nil {
				t.Fatal(err)
			}
			return feed
		}
		// Conclude messages of another feed: the dead index entries that this leaves behind are not
		// in the way until vacuum removes them.
		feed, other := open(), open()
		ask := func(feed feeds.Feed, what string, probe bool, messages, buffers int, names ...string) []feeds.Deferred {
			t.Helper()
			want := feeds.DueRequest{Shards: share.Shards, Limit: limit}
			for _, shard := range share.Shards {
				for _, n := range names {
					want.Held = append(want.Held, feeds.HeldName{Shard: shard, Name: n, Probe: probe})
				}
			}
			plans.clear()
			due, err := feed.Due(ctx, want)
			if err != nil {
				t.Fatal(err)
			}
			touched, kinds, faults := plans.inspectAll("deferred")
			t.Logf("%s: %d messages, %d buffers, limit %d, by %v", what, len(due.Messages), touched, buffers, kinds)
			if len(due.Messages) != messages || touched > buffers {
				t.Errorf("%s: %d messages and %d buffers, want %d and at most %d", what, len(due.Messages), touched, messages, buffers)
			}
			for _, fault := range faults {
				t.Errorf("%s: %s", what, fault)
			}
			return due.Messages
		}
		conclude := func(what string, msgs []feeds.Deferred, delivered bool) {
			t.Helper()
			var done []feeds.Conclusion
			for _, d := range msgs {
				done = append(done, feeds.Conclusion{Shard: d.Shard, Seq: d.Seq, Delivered: delivered, Status: feeds.StatusHeld, Name: d.Name})
			}
			plans.clear()
			if _, err := other.Conclude(ctx, done); err != nil {
				t.Fatal(err)
			}
			touched, kinds, faults := plans.inspectAll("deferred")
			t.Logf("%s: %d messages, %d buffers, by %v", what, len(msgs), touched, kinds)
			if most := 200 * len(msgs); touched > most { // each message is in up to seven indexes, and its key is looked up
				t.Errorf("%s: %d buffers for %d messages, want at most %d", what, touched, len(msgs), most)
			}
			for _, fault := range faults {
				t.Errorf("%s: %s", what, fault)
			}
		}
		for _, known := range []string{"never analyzed", "analyzed"} {
			ask(feed, known+", held", false, 0, few, "name 0", "name 1")
			ask(feed, known+", probed", true, planShards, few, "name 0", "name 1")
			ask(feed, known+", released", false, limit, 30*limit, "name 0")
			msgs := ask(other, known+", of the other feed", false, limit, 60*limit, "name 0")
			conclude(known+", failed", msgs, false)
			conclude(known+", delivered", msgs, true)
			h.exec("ANALYZE @.deferred")
		}
	})
}

// TestDeferPlans verifies that deferring messages costs no more where many others are deferred.
func TestDeferPlans(t *testing.T) {
	t.Parallel()
	const others = 10_000
	pgtest.Each(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newPlanHouse(t, dsn)
		h.exec("ALTER TABLE @.deferred SET (autovacuum_enabled = false)")
		h.exec("ANALYZE @.deferred")
		name := h.newFeed("")
		h.exec(fmt.Sprintf(`INSERT INTO @.deferred (feed, seq, shard, status, blocking, available_at, order_key, priority, id, type,
			  schema_version, created_at, occurred_at, payload)
			SELECT '%s', -i, i %% %d, 'waiting', true, 'infinity', 'other ' || i %% 100, 0, gen_random_uuid(), 't', 1, now(), now(), ''
			FROM generate_series(1, %d) i`, name, planShards, others))
		var plans plans
		feed := h.watched(t, dsn, &plans).open(name)
		defer feed.Close(ctx)
		share, err := feed.Balance(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range []string{"never analyzed", "analyzed", "analyzed while none was waiting"} {
			h.exec("INSERT INTO @.messages (type, key) SELECT 't', (g % 20)::text FROM generate_series(1, 200) g")
			var all []feeds.Deferral
			for len(all) < 200 {
				var want []feeds.Demand
				for _, shard := range share.Shards {
					want = append(want, feeds.Demand{Shard: shard, Limit: 200})
				}
				batches, err := feed.Read(ctx, want)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range batches {
					for i := range b.Messages {
						all = append(all, feeds.Deferral{Batch: &b, Index: i, Status: feeds.StatusWaiting, Blocking: true})
					}
				}
			}
			plans.clear()
			if err := feed.Defer(ctx, all); err != nil {
				t.Fatal(err)
			}
			touched, kinds, faults := plans.inspectAll("deferred")
			t.Logf("%s: %d messages, %d buffers, by %v", known, len(all), touched, kinds)
			if most := 200 * len(all); touched > most {
				t.Errorf("%s: %d buffers for %d messages, want at most %d", known, touched, len(all), most)
			}
			for _, fault := range faults {
				t.Errorf("%s: %s", known, fault)
			}
			switch known {
			case "never analyzed":
				h.exec("ANALYZE @.deferred")
			case "analyzed":
				h.exec("UPDATE @.deferred SET status = 'parked' WHERE seq < 0")
				h.exec("DELETE FROM @.deferred WHERE seq > 0")
				h.exec("ANALYZE @.deferred")
				h.exec("UPDATE @.deferred SET status = 'waiting'")
			}
		}
	})
}
