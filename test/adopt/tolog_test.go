package adopt_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt/tolog"
	"github.com/postrider/postrider/store/table/tabletest"
	"github.com/postrider/postrider/test/proof/history"
)

// TestToLog moves an application to the log under load. Eight processes write on 500 keys, first to
// the old table; while the table drains and afterwards, one after the other switches to the log.
// One relay of each kind is killed. No message is lost, every key keeps its order, and only what a
// killed relay had not recorded arrives twice.
func TestToLog(t *testing.T) {
	messages := 10_000
	if need.IsLong() {
		messages = 225_000 // of which a tenth is rolled back
	}
	s := newShop(t, 500)
	w := s.write(8, messages)

	w.reach(messages / 4)
	m, err := tolog.New(s.pool, tolog.Config{Classic: s.classicConfig, Log: s.logConfig, Feed: "live", Quiet: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	by := admin.By{Who: "test", Why: "to the log"}
	if err := m.Finish(t.Context()); err != nil {
		t.Errorf("there is nothing to finish, and yet: %v", err)
	}
	begin := time.Now()
	if err := m.Begin(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	installed := time.Since(begin)
	// The backlog exists before the first relay starts; one of the relays is killed while the table
	// drains.
	oldRelays := []*member{s.classic("classic1"), s.classic("classic2"), s.classic("classic3")}
	var refused *admin.RefusedError
	if err := m.Finish(t.Context()); !errors.As(err, &refused) {
		t.Errorf("in the middle of the move, Finish returns %v", err)
	}
	logRelays := []*member{s.log("log1"), s.log("log2"), s.log("log3")}
	switching := make(chan struct{})
	go func() {
		defer close(switching)
		w.switchOver(messages/4, messages*3/4)
	}()
	killed := false
	err = m.Drain(t.Context(), by, func(now tolog.Status) {
		if !killed && now.Waiting > 0 {
			killed = true
			oldRelays[0].kill()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	drained := time.Since(begin) - installed
	until(t, "the log's relays have begun", func() bool { return s.sink.from("log") > messages/20 })
	logRelays[0].kill()
	<-switching
	w.wait()

	committed := w.committed()
	until(t, "everything has arrived", func() bool { return s.sink.different() >= len(committed) })
	verdict := history.Compare(committed, s.sink.deliveries())
	t.Log(verdict)
	t.Logf("trigger after %v, longest transaction of a writer %v; the feed was paused for %v; what the log carried was at most %v late, %v in 99 of 100",
		installed.Round(time.Millisecond), w.longest().Round(time.Millisecond), (installed + drained).Round(time.Millisecond),
		s.sink.worst(1).Round(time.Millisecond), s.sink.worst(0.99).Round(time.Millisecond))
	t.Logf("the old table's relays delivered %d, the log's %d", s.sink.from("classic"), s.sink.from("log"))
	if !verdict.Clean() {
		t.Error("messages were lost, made up or out of order")
	}
	again := make(map[string]int)
	for _, d := range verdict.Duplicates {
		again[d.First.Process]++
	}
	for _, m := range slices.Concat(oldRelays, logRelays) {
		t.Logf("%s: %d of its messages came again; it lost %d shards, %d of them before a kill", m.name, again[m.name],
			m.relay.Stats().Fenced, m.fencedBefore)
		if again[m.name] > 0 && !m.excused() {
			t.Errorf("%d messages of %s came again, although it was not killed", again[m.name], m.name)
		}
	}
	if !killed {
		t.Error("the table was empty at once: the test shows nothing")
	}
	until(t, "no process writes to the table any more", func() bool {
		now, err := m.Status(t.Context())
		return err == nil && now.Moved() && now.Waiting == 0 && time.Since(now.LastInsert) > time.Second
	})
	if err := m.Finish(t.Context()); err != nil {
		t.Errorf("Finish: %v", err)
	}
	if now, err := m.Status(t.Context()); err != nil || now.Installed {
		t.Errorf("after Finish the trigger is there: %+v, %v", now, err)
	}
}

// TestToLogWaitsForWriters has a transaction that wrote to the table before the trigger existed,
// and commits late. Its message is delivered before those of its key in the log. Meanwhile other
// writers wait no longer than the lock timeout.
func TestToLogWaitsForWriters(t *testing.T) {
	s := newShop(t, 2)
	ctx := t.Context()
	early, err := s.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Rollback(ctx)
	w := &writers{shop: s}
	if _, err := w.tell(ctx, early, "k1", true); err != nil {
		t.Fatal(err)
	}
	m, err := tolog.New(s.pool, tolog.Config{
		Classic: s.classicConfig, Log: s.logConfig, Feed: "live", LockTimeout: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.classic("classic1")
	s.log("log1")
	moved := make(chan error, 1)
	go func() { moved <- m.Run(ctx, admin.By{Who: "test"}, nil) }()
	for range 5 { // others write meanwhile
		begin := time.Now()
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			_, err := w.tell(ctx, tx, "k2", true)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a writer was held up for %v", took)
		}
	}
	select {
	case err := <-moved:
		t.Fatalf("the move did not wait for a transaction that is open: %v", err)
	default:
	}
	if err := early.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := w.tell(ctx, tx, "k1", true)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := w.tell(ctx, tx, "k1", false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "all have arrived", func() bool { return s.sink.different() == 8 })
	last := make(map[string]int64)
	for _, d := range s.sink.deliveries() {
		if d.N <= last[d.Key] {
			t.Errorf("%s: %d came after %d", d.Key, d.N, last[d.Key])
		}
		last[d.Key] = d.N
	}
}

// TestToLogBlocked has one row behind a dead letter of its key, and one that is due later. The log
// does not overtake the first unless configured to, and does not wait for the second.
func TestToLogBlocked(t *testing.T) {
	t.Parallel()
	d := named(t, "events-bigserial")
	server := tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	d.create(t, server)
	m := move(t, d, server)
	s := &scene{t: t, d: d, server: server, cfg: m.cfg}
	for n := range 2 {
		if err := s.write(event{aggregate: "bad", n: n + 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.write(event{aggregate: "later", n: 1}, map[string]any{"available_at": time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	s.start(refusing{}, relay.Config{Retry: retry.Policy{Attempts: 1}})
	by := admin.By{Who: "test"}
	if err := m.Run(t.Context(), by, nil); !errors.Is(err, tolog.ErrBlocked) {
		t.Fatalf("the move ends with %v, want ErrBlocked", err)
	}
	now, err := m.Status(t.Context())
	if err != nil || !now.Paused || now.Waiting != 1 || now.Blocked != 1 || now.Scheduled != 1 {
		t.Errorf("the status is %+v, %v", now, err)
	}
	anyway, err := tolog.New(pgtest.Pool(t, server.Address), tolog.Config{Classic: m.cfg, Log: m.log, LeaveBlocked: true, Quiet: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := anyway.Run(t.Context(), by, nil); err != nil {
		t.Fatal(err)
	}
	if now, err = m.Status(t.Context()); err != nil || !now.Moved() {
		t.Errorf("the status is %+v, %v", now, err)
	}
	if err := anyway.Finish(t.Context()); !errors.Is(err, admin.ErrRefused) {
		t.Errorf("with rows that are not delivered, Finish returns %v", err)
	}
}

// refusing rejects everything.
type refusing struct{}

func (refusing) Publish(_ context.Context, msgs []postrider.Message) []error {
	return slices.Repeat([]error{postrider.Permanent(errors.New("no"))}, len(msgs))
}
func (refusing) KeepsOrder() bool { return true }
func (refusing) Close() error     { return nil }

// TestToLogNeedsUniqueIDs rejects a table in which several rows can have one ID: the trigger would
// mark rows that were not copied.
func TestToLogNeedsUniqueIDs(t *testing.T) {
	t.Parallel()
	server := tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	_, err := server.DB.ExecContext(t.Context(), `CREATE TABLE outbox (tenant_id int NOT NULL, id bigint NOT NULL, payload jsonb NOT NULL,
		status text NOT NULL DEFAULT 'pending', PRIMARY KEY (tenant_id, id))`)
	if err != nil {
		t.Fatal(err)
	}
	m := moveLayout(t, table.Layout{
		Table: "outbox", ID: "id", DefaultType: "noted", Columns: table.Columns{Payload: "payload"},
		State: table.State{Status: "status", Pending: []string{"pending"}, Published: "sent"},
	}, server)
	if err := m.Begin(t.Context(), admin.By{Who: "op", Why: "test"}); err == nil || !strings.Contains(err.Error(), `the ID "id" of table outbox is not unique`) {
		t.Errorf("begun: %v", err)
	}
}

// TestToLogRehearsal checks that a move reports the rows that it cannot copy before it changes
// anything, that empty dedup keys count as none, and that a finished row that is reset to pending
// goes to the log too.
func TestToLogRehearsal(t *testing.T) {
	t.Parallel()
	server := tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	var m *moving
	in := func(sql string) string { return strings.ReplaceAll(sql, "@.", m.log.Schema+".") }
	exec := func(sql string) {
		t.Helper()
		if m != nil {
			sql = in(sql)
		}
		if _, err := server.DB.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE outbox (id bigserial PRIMARY KEY, payload jsonb NOT NULL, dedup_key text NOT NULL DEFAULT '', made text,
		status text NOT NULL DEFAULT 'pending')`)
	exec(`INSERT INTO outbox (payload, made, status) VALUES ('{}', '2026-01-02', 'sent'), ('{}', 'yesterday', 'sent')`)
	layout := table.Layout{
		Table: "outbox", ID: "id", DefaultType: "noted", Columns: table.Columns{Payload: "payload", DedupKey: "dedup_key", TenantID: "made"},
		State: table.State{Status: "status", Pending: []string{"pending"}, Published: "sent", Dead: "dead"},
	}
	m = moveLayout(t, layout, server)
	by := admin.By{Who: "op", Why: "test"}
	exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.tenant_id = 'yesterday' THEN RAISE 'not on my watch'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON @.messages FOR EACH ROW EXECUTE FUNCTION refuse()`)
	rehearsal, err := m.Rehearse(t.Context())
	if err != nil || rehearsal.Rows != 2 || rehearsal.Fail != 1 || rehearsal.Row != "2" || !strings.Contains(rehearsal.Why, "not on my watch") {
		t.Errorf("%+v, %v", rehearsal, err)
	}
	var refused *admin.RefusedError
	if err := m.Begin(t.Context(), by); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "such as 2: not on my watch") {
		t.Errorf("begun: %v", err)
	}
	if now, err := m.Status(t.Context()); err != nil || now.Installed || now.Exists {
		t.Errorf("something was changed: %+v, %v", now, err)
	}
	exec(`DROP TRIGGER refuse ON @.messages; DROP FUNCTION refuse()`)
	if err := m.Begin(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	exec(`INSERT INTO outbox (payload) VALUES ('{}'), ('{}')`) // two rows without a key
	exec(`UPDATE outbox SET status = 'pending' WHERE id = 1`)  // manually
	exec(`INSERT INTO outbox (id, payload, status) VALUES (2, '{}', 'pending') ON CONFLICT (id) DO UPDATE SET status = 'pending'`)
	exec(`UPDATE outbox SET status = 'claimed' WHERE id = 3; UPDATE outbox SET status = 'sent' WHERE id = 3`) // no pending row
	var copied, waiting int
	err = server.DB.QueryRowContext(t.Context(), in(`SELECT (SELECT count(*) FROM @.messages WHERE type = 'noted'),
		(SELECT count(*) FROM outbox WHERE status <> 'sent')`)).Scan(&copied, &waiting)
	if err != nil || copied != 4 || waiting != 0 {
		t.Errorf("%d rows are in the log, %d wait in the table, %v: want 4 and 0", copied, waiting, err)
	}
}
