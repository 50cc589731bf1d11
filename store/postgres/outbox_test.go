package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestSQLOutbox(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{})
		db := stdlib.OpenDBFromPool(h.pool)
		defer db.Close()
		cfg := h.cfg
		cfg.LockKeys = true
		outbox := must(postgres.OpenSQL(db, cfg))(t).Outbox()

		full := postrider.Message{
			ID: postrider.NewID(), Type: "order.placed", AggregateType: "order", AggregateID: "42", Topic: "orders",
			RoutingKey: "r", TenantID: "acme", Payload: []byte("\x00\xff{}"), ContentType: "application/x", SchemaVersion: 3,
			SchemaID: "s", DedupKey: "d", CorrelationID: "c", CausationID: "e", Headers: map[string]string{"h": `a"b\c`},
			OccurredAt: time.Date(2025, 1, 2, 3, 4, 5, 6000, time.UTC),
		}
		many, ids := messages(1000)
		inTx(t, db, func(tx *sql.Tx) error { return outbox.Enqueue(ctx, tx, full) })
		inTx(t, db, func(tx *sql.Tx) error { return outbox.Enqueue(ctx, tx, many...) })
		inTx(t, db, func(tx *sql.Tx) error { return outbox.Enqueue(ctx, tx) })
		rolledBack, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := outbox.Enqueue(ctx, rolledBack, postrider.Message{Type: "never"}); err != nil {
			t.Error(err)
		}
		rolledBack.Rollback()

		got, err := deliver(ctx, h.open("f"))
		if err != nil {
			t.Fatal(err)
		}
		byID := map[postrider.ID]postrider.Message{}
		for _, m := range got {
			byID[m.ID] = m
		}
		if len(got) != 1001 || len(byID) != 1001 {
			t.Errorf("%d messages arrived, %d different ones, want 1001", len(got), len(byID))
		}
		for _, id := range ids {
			if byID[id].Type != "t" {
				t.Errorf("message %s is missing", id)
			}
		}
		first := byID[full.ID]
		if first.AggregateID != "42" || string(first.Payload) != "\x00\xff{}" || first.Headers["h"] != `a"b\c` ||
			first.SchemaVersion != 3 || !first.OccurredAt.Equal(full.OccurredAt) {
			t.Errorf("fields have changed: %+v", first)
		}
	})
}

// TestOutboxShapes writes messages with all kinds of columns, one at a time and several in one
// call, and reads them back. A connection keeps a bounded number of statements prepared for them.
func TestOutboxShapes(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		h := newHouse(t, dsn, postgres.Layout{})
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		full := postrider.Message{
			Type: "order.placed", AggregateType: "order", AggregateID: "42", Key: "k", Topic: "orders", RoutingKey: "r", TenantID: "acme",
			Payload: []byte("\x00\xff"), ContentType: "application/x", SchemaVersion: 3, SchemaID: "s", CorrelationID: "c", CausationID: "e",
			Headers: map[string]string{"h": "{\"}"}, OccurredAt: time.Date(2025, 1, 2, 3, 4, 5, 6000, time.UTC), Priority: -2,
		}
		written := map[postrider.ID]postrider.Message{}
		for i := range 300 {
			msgs := make([]postrider.Message, 1+2*(i%2))
			for j := range msgs {
				m := postrider.Message{ID: postrider.NewID(), Type: full.Type, SchemaVersion: 1}
				for f, have := range []func(){
					func() { m.AggregateType, m.AggregateID = full.AggregateType, full.AggregateID }, func() { m.Key = full.Key },
					func() { m.Topic = full.Topic }, func() { m.RoutingKey = full.RoutingKey }, func() { m.TenantID = full.TenantID },
					func() { m.Payload = full.Payload }, func() { m.ContentType = full.ContentType }, func() { m.SchemaVersion = full.SchemaVersion },
					func() { m.SchemaID = full.SchemaID }, func() { m.CorrelationID = full.CorrelationID }, func() { m.CausationID = full.CausationID },
					func() { m.Headers = full.Headers }, func() { m.OccurredAt = full.OccurredAt }, func() { m.Priority = full.Priority },
					func() { m.DedupKey = m.ID.String() },
				} {
					if (i*2654435761>>3+j*40503)>>f&1 == 1 {
						have()
					}
				}
				msgs[j], written[m.ID] = m, m
			}
			if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return h.outbox.Enqueue(ctx, tx, msgs...) }); err != nil {
				t.Fatal(err)
			}
		}
		got, err := deliver(ctx, h.open("f"))
		if err != nil || len(got) != len(written) {
			t.Fatalf("%d messages arrived of %d, %v", len(got), len(written), err)
		}
		for _, m := range got {
			want := written[m.ID]
			if want.OccurredAt.IsZero() {
				want.OccurredAt = m.OccurredAt // that of the row
			}
			if !m.OccurredAt.Equal(want.OccurredAt) || len(m.Headers) != len(want.Headers) || m.Headers["h"] != want.Headers["h"] ||
				string(m.Payload) != string(want.Payload) {
				t.Errorf("%+v became %+v", want, m)
			}
			m.OccurredAt, m.Headers, m.Payload = want.OccurredAt, want.Headers, want.Payload
			if !reflect.DeepEqual(m, want) {
				t.Errorf("%+v became %+v", want, m)
			}
		}
		var prepared int
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%messages%'").Scan(&prepared); err != nil || prepared > 40 {
			t.Errorf("%d statements are prepared, %v", prepared, err)
		}
	})
}

func inTx(t *testing.T, db *sql.DB, f func(*sql.Tx) error) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestEnqueueIsOneRoundTrip counts round trips on the connection. A driver that prepares statements
// needs a second one the first time that a connection sees the statement.
func TestEnqueueIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, testOneRoundTrip)
	pgtest.EachPooled(t, testOneRoundTrip)
}

func testOneRoundTrip(t *testing.T, dsn string) {
	ctx := t.Context()
	h := newHouse(t, dsn, postgres.Layout{})
	var wire wire
	pool := h.wired(dsn, &wire)
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	sqlOutbox := must(postgres.OpenSQL(db, h.cfg))(t).Outbox()

	for _, size := range []int{1, 1000} {
		msgs, _ := messages(size)
		for i := range msgs {
			msgs[i].Payload = []byte(strings.Repeat("p", 300)) // 300 kB exceed every buffer on the way
		}
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := h.outbox.Enqueue(ctx, tx, msgs[:min(size, 2)]...); err != nil { // prepares the statement
				return err
			}
			return wire.mustTurn(t, "Outbox", 1, func() error { return h.outbox.Enqueue(ctx, tx, msgs...) })
		})
		if err != nil {
			t.Fatal(err)
		}
		inTx(t, db, func(tx *sql.Tx) error {
			if err := sqlOutbox.Enqueue(ctx, tx, msgs[:min(size, 2)]...); err != nil { // prepares the statement
				return err
			}
			return wire.mustTurn(t, "SQLOutbox", 1, func() error { return sqlOutbox.Enqueue(ctx, tx, msgs...) })
		})
	}
}

// wired returns a pool with one connection, whose traffic is counted.
func (h *house) wired(dsn string, w *wire) *pgxpool.Pool {
	h.t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		h.t.Fatal(err)
	}
	config.MaxConns = 1
	if strings.Contains(dsn, "/pg1") { // PgBouncer here keeps no prepared statements
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &wiredConn{conn, w}, err
	}
	pool, err := pgxpool.NewWithConfig(h.t.Context(), config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	return pool
}

// wire counts how often the direction of the traffic changes from server to client.
type wire struct {
	mu    sync.Mutex
	heard bool // the server sent last
	turns int
}

func (w *wire) mustTurn(t *testing.T, who string, want int, f func() error) error {
	t.Helper()
	w.mu.Lock()
	w.turns = 0
	w.mu.Unlock()
	err := f()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns != want {
		t.Errorf("%s: %d round trips, want %d", who, w.turns, want)
	}
	return err
}

type wiredConn struct {
	net.Conn
	wire *wire
}

func (c *wiredConn) Write(b []byte) (int, error) {
	c.wire.mu.Lock()
	if c.wire.heard {
		c.wire.turns++
	}
	c.wire.heard = false
	c.wire.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *wiredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.mu.Lock()
	c.wire.heard = c.wire.heard || n > 0
	c.wire.mu.Unlock()
	return n, err
}

// TestQueue verifies that messages travel with the caller's own statements and COMMIT, in one round
// trip.
func TestQueue(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, testQueue)
	pgtest.EachPooled(t, testQueue)
}

func testQueue(t *testing.T, dsn string) {
	ctx := t.Context()
	h := newHouse(t, dsn, postgres.Layout{})
	h.exec("CREATE TABLE @.orders (id integer)")
	cfg := h.cfg
	cfg.LockKeys = true
	locking := must(postgres.Open(h.pool, cfg))(t).Outbox()
	var wire wire
	pool := h.wired(dsn, &wire)
	unique := postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "1"}, nil)
	send := func(outbox *postgres.Outbox, msgs ...postrider.Message) error {
		var batch pgx.Batch
		batch.Queue("BEGIN")
		batch.Queue(h.in("INSERT INTO @.orders VALUES (1)"))
		if err := outbox.Queue(&batch, msgs...); err != nil {
			return err
		}
		batch.Queue("COMMIT")
		return pool.SendBatch(ctx, &batch).Close()
	}
	many, _ := messages(10)
	for i, step := range []struct {
		outbox *postgres.Outbox
		msgs   []postrider.Message
	}{
		{h.outbox, many[:1]}, {h.outbox, many[1:2]}, {h.outbox, many[2:]}, {h.outbox, nil}, {locking, []postrider.Message{unique}}, {h.outbox, []postrider.Message{unique}},
	} {
		run := func() error { return send(step.outbox, step.msgs...) }
		var err error
		if i == 1 {
			err = wire.mustTurn(t, "Queue", 1, run)
		} else {
			err = run()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var invalid *postrider.InvalidError
	if err := h.outbox.Queue(&pgx.Batch{}, postrider.Message{}); !errors.As(err, &invalid) {
		t.Errorf("a message without a type: %v", err)
	}
	got, err := deliver(ctx, h.open("f"))
	if err != nil || len(got) != 11 {
		t.Errorf("%d messages arrived, want 11; %v", len(got), err)
	}
}
