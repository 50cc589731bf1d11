package adopt_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestSameMessage writes the same row before and after the table's messages go to the log. The
// messages sent must be equal.
func TestSameMessage(t *testing.T) {
	for i, d := range append([]described{debezium}, all...) {
		t.Run(d.preset, func(t *testing.T) {
			t.Parallel()
			server := tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES"+[]string{"15", "18"}[i%2]))
			d.create(t, server)
			m := move(t, d, server)
			s := &scene{t: t, d: d, server: server, cfg: m.cfg}
			before, after := &caught{}, &caught{}
			if err := s.write(event{aggregate: "42", n: 1}, nil); err != nil {
				t.Fatal(err)
			}
			s.start(before, relay.Config{})
			if err := m.Run(t.Context(), admin.By{Who: "test"}, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.write(event{aggregate: "42", n: 1}, map[string]any{}); err != nil && d.preset != "integration-events" {
				t.Fatal(err)
			} else if d.preset == "integration-events" { // whose dedup key is unique
				s.exec("UPDATE integration_event_outbox SET dedup_key = 'another'")
				s.exec("DELETE FROM " + m.log.Schema + ".dedup_keys")
				if err := s.write(event{aggregate: "42", n: 1}, nil); err != nil {
					t.Fatal(err)
				}
			}
			m.relay(t, after)
			until(t, "both have arrived", func() bool { return len(before.all()) == 1 && len(after.all()) == 1 })
			one, two := before.all()[0], after.all()[0]
			if two.OccurredAt.IsZero() || one.ID == two.ID {
				t.Errorf("the copy has the time %v and the ID %v", two.OccurredAt, two.ID)
			}
			if d.published != "" {
				until(t, "both rows say that they are published", func() bool { return s.count(d.published) == 2 })
				for id := range s.rowIDs() {
					if want := m.id(t, id); want != one.ID && want != two.ID {
						t.Errorf("row %s has no message with the ID %v", id, want)
					}
				}
			} else if n := s.count("true"); n != 0 {
				t.Errorf("%d rows are left", n)
			}
			one.ID, one.OccurredAt, one.WireID = two.ID, two.OccurredAt, ""
			if one.Key == "" && two.Key == one.OrderKey() {
				one.Key = two.Key // the log needs a key with only half of an aggregate
			}
			if !reflect.DeepEqual(one, two) {
				t.Errorf("\nthe table's message is %+v\nthe log's             %+v", one, two)
			}
		})
	}
}

// TestOneFact publishes a fact with one dedup key both ways, with a role that may only write to the
// table.
func TestOneFact(t *testing.T) {
	t.Parallel()
	d := named(t, "integration-events")
	server := tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	d.create(t, server)
	m := move(t, d, server)
	s := &scene{t: t, d: d, server: server, cfg: m.cfg}
	if err := s.write(event{aggregate: "42", n: 1}, nil); err != nil { // before
		t.Fatal(err)
	}
	s.start(&caught{}, relay.Config{})
	if err := m.Run(t.Context(), admin.By{Who: "test"}, nil); err != nil {
		t.Fatal(err)
	}
	offer := func(key string) (repeats []int) {
		tx, err := server.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		e := postrider.Event("order.changed", postrider.Aggregate{Type: "order", ID: "42"}, []byte("{}"))
		e.DedupKey = key
		if repeats, err = m.outbox.Offer(t.Context(), tx, e); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		return repeats
	}
	if len(offer("order:42:1")) != 1 {
		t.Error("the log accepts a fact that the table has told before the move")
	}
	if len(offer("order:42:2")) != 0 {
		t.Error("the log refuses a new fact")
	}
	role := fmt.Sprintf("writer_%d", time.Now().UnixNano())
	s.exec("CREATE ROLE " + role)
	t.Cleanup(func() {
		_, err := server.DB.ExecContext(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role)
		if err != nil {
			t.Error(err)
		}
	})
	var schema string
	if err := server.DB.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	s.exec("GRANT USAGE ON SCHEMA " + schema + " TO " + role)
	s.exec("GRANT INSERT ON integration_event_outbox TO " + role)
	s.exec("GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + schema + " TO " + role)
	pool := pgtest.Pool(t, server.Address)
	for _, n := range []int{2, 3, 3} { // into the log; new; and rejected by the table's own constraint
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role); err != nil {
				return err
			}
			row := d.row(event{aggregate: "42", n: n, kind: "order.changed"})
			_, err := tx.Exec(t.Context(), d.insert(table.PostgreSQL)+" ON CONFLICT DO NOTHING", row...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	arrived := &caught{}
	m.relay(t, arrived)
	until(t, "both new facts have arrived", func() bool { return len(arrived.all()) >= 2 })
	keys := make(map[string]int)
	for _, msg := range arrived.all() {
		keys[msg.DedupKey]++
	}
	if want := map[string]int{"order:42:2": 1, "order:42:3": 1}; !reflect.DeepEqual(keys, want) {
		t.Errorf("the log has %v, want %v", keys, want)
	}
	if n := s.count(d.waits); n != 0 {
		t.Errorf("%d rows wait", n)
	}
}

// TestOddValues uses a table whose columns may hold anything. No value may fail a writer's
// transaction.
func TestOddValues(t *testing.T) {
	t.Parallel()
	server := tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	d := described{preset: "odd", table: "Odd Outbox", published: "done"}
	s := &scene{t: t, d: d, server: server}
	s.exec(`CREATE TABLE "Odd Outbox" (id text PRIMARY KEY, kind text, agg int, body text, meta text, prio bigint, ver bigint, at timestamp,
		done boolean NOT NULL DEFAULT false)`)
	layout := table.Layout{
		Table: "Odd Outbox", ID: "id", OrderBy: []string{"at", "id"}, DefaultTopic: "it's",
		Columns: table.Columns{
			Type: "kind", AggregateID: "agg", Payload: "body", Headers: "meta", Priority: "prio", SchemaVersion: "ver", CreatedAt: "at",
		},
		State: table.State{Status: "done", Pending: []string{"false"}, Published: "true"},
	}
	m := moveLayout(t, layout, server)
	if err := m.Run(t.Context(), admin.By{Who: "test"}, nil); err != nil {
		t.Fatal(err)
	}
	s.exec(`INSERT INTO "Odd Outbox" VALUES ('a''\b', 'k', 1, 'text', 'not JSON', 9223372036854775807, -9223372036854775808, now(), false),
		('b', '', NULL, NULL, '{"a": 1, "b": "x", "c": null}', NULL, NULL, NULL, false), ('c', NULL, 2, '', '[]', 0, 0, 'infinity', false),
		('01a1e1d3-3152-7733-8de6-c39d6c2ce64a', 'k', 1, '{}', '', 1, 1, now(), false), ('e', 'k', 1, 'x', NULL, 1, 1, now(), true)`)
	// A row that the log rejects stays in the table.
	s.exec(`INSERT INTO "Odd Outbox" (id, kind) VALUES ('long', repeat('k', 2000))`)
	if n := s.count("NOT done"); n != 1 {
		t.Errorf("%d rows wait, want the one that is beyond the limits", n)
	}
	if n := s.count(d.published); n != 5 {
		t.Errorf("%d rows are marked, want all but one", n)
	}
	rows, err := server.DB.QueryContext(t.Context(), `SELECT id, type, coalesce(key, ''), topic, coalesce(headers::text, ''), convert_from(payload, 'UTF8')
		FROM `+m.log.Schema+`.messages ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got [][6]string
	for rows.Next() {
		var r [6]string
		if err := rows.Scan(&r[0], &r[1], &r[2], &r[3], &r[4], &r[5]); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := [][6]string{
		{m.id(t, `a'\b`).String(), "k", "/1", "it's", `{"headers": "not JSON"}`, "text"},
		{m.id(t, "b").String(), "-", "", "it's", `{"a": 1, "b": "x", "c": null}`, ""},
		{m.id(t, "c").String(), "-", "/2", "it's", `{"headers": "[]"}`, ""},
		{"01a1e1d3-3152-7733-8de6-c39d6c2ce64a", "k", "/1", "it's", "", "{}"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the log has\n%q, want\n%q", got, want)
	}
}
