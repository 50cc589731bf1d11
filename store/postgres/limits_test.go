package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/storetest"
)

// limitedColumns are the texts of a message.
var limitedColumns = []string{
	"type", "aggregate_type", "aggregate_id", "key", "topic", "routing_key", "tenant_id", "content_type", "schema_id", "dedup_key",
	"correlation_id", "causation_id",
}

// TestLimits holds that no way into the log is wider than that of the library.
func TestLimits(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		ways := map[string]func(ctx context.Context, columns []string, values []any) error{
			"enqueue": func(ctx context.Context, columns []string, values []any) error {
				return h.call(ctx, "SELECT @.enqueue(", " => ", ")", columns, values)
			},
			"INSERT": func(ctx context.Context, columns []string, values []any) error {
				places := make([]string, len(values))
				for i := range places {
					places[i] = fmt.Sprintf("$%d", i+1)
				}
				_, err := h.pool.Exec(ctx, h.in("INSERT INTO @.messages ("+strings.Join(columns, ", ")+") VALUES ("+strings.Join(places, ", ")+")"), values...)
				return err
			},
			"COPY": func(ctx context.Context, columns []string, values []any) error {
				_, err := h.pool.CopyFrom(ctx, pgx.Identifier{h.cfg.Schema, "messages"}, columns, pgx.CopyFromRows([][]any{values}))
				return err
			},
		}
		for name, write := range ways {
			t.Run(name, func(t *testing.T) {
				h.testTexts(t, name, write)
				h.testOtherLimits(t, name, write)
			})
		}
		t.Run("200 MB", func(t *testing.T) {
			for _, sql := range []string{
				"INSERT INTO @.messages (type, payload) VALUES ('t', convert_to(repeat('x', 200000000), 'UTF8'))",
				"SELECT @.enqueue('t', payload_bytes => convert_to(repeat('x', 200000000), 'UTF8'))",
			} {
				_, err := h.pool.Exec(t.Context(), h.in(sql))
				mustRefuse(t, err, "payload", "payload has 200000000 bytes, more than 16777216")
			}
		})
	})
}

func (h *house) call(ctx context.Context, before, between, after string, columns []string, values []any) error {
	named := make([]string, len(values))
	for i, c := range columns {
		if c == "payload" {
			c = "payload_bytes"
		}
		named[i] = fmt.Sprintf("%s%s$%d", c, between, i+1)
	}
	_, err := h.pool.Exec(ctx, h.in(before+strings.Join(named, ", ")+after), values...)
	return err
}

func (h *house) testTexts(t *testing.T, way string, write func(context.Context, []string, []any) error) {
	for _, c := range limitedColumns {
		columns, values := []string{"type", "payload"}, []any{"t", []byte("secret")}
		if c == "type" {
			columns, values = columns[1:], values[1:]
		}
		columns = append(columns, c)
		for _, size := range []int{postrider.MaxText - 1, postrider.MaxText, postrider.MaxText + 1, 3200} {
			err := write(t.Context(), columns, append(slices.Clone(values), storetest.Noise(size)))
			if size <= postrider.MaxText {
				if err != nil {
					t.Errorf("%s of %d bytes: %v", c, size, err)
				}
				continue
			}
			mustRefuse(t, err, "", fmt.Sprintf("too long for type character varying(%d)", postrider.MaxText))
		}
		err := write(t.Context(), columns, append(slices.Clone(values), ""))
		if c == "type" {
			mustRefuse(t, err, "type", "type is empty")
			continue
		}
		if err != nil {
			t.Errorf("an empty %s, which is none: %v", c, err)
		}
	}
}

func (h *house) testOtherLimits(t *testing.T, way string, write func(context.Context, []string, []any) error) {
	columns, header := []string{"type", "payload", "headers"}, func(name string, size int) string {
		return fmt.Sprintf(`{%q: %q}`, name, storetest.Noise(size))
	}
	for headers, says := range map[string]string{
		header("h", postrider.MaxHeaders-1): "",
		header("h", postrider.MaxHeaders):   "headers has 65537 bytes, more than 65536",
		header("", 1):                       "headers has an empty name",
		`["a"]`:                             "headers must be a JSON object",
	} {
		err := write(t.Context(), columns, []any{"t", []byte("secret"), headers})
		if says != "" {
			mustRefuse(t, err, "headers", says)
		} else if err != nil {
			t.Errorf("the largest headers: %v", err)
		}
	}
	if err := write(t.Context(), columns[:2], []any{"t", make([]byte, postrider.MaxPayload)}); err != nil {
		t.Errorf("the largest payload: %v", err)
	}
	mustRefuse(t, write(t.Context(), columns[:2], []any{"t", make([]byte, postrider.MaxPayload+1)}), "payload", "payload has 16777217 bytes, more than 16777216")
	mustRefuse(t, write(t.Context(), []string{"type", "payload"}, []any{nil, []byte("secret")}), "type", "type is empty")
	mustRefuse(t, write(t.Context(), []string{"type", "payload", "schema_version"}, []any{"t", []byte("secret"), -1}), "schema_version", "schema_version is below 0")
	if way != "enqueue" { // which has two of them
		mustRefuse(t, write(t.Context(), []string{"type", "payload"}, []any{"t", nil}), "payload", "payload is empty")
	}
}

// mustRefuse checks that an error names the column and what is wrong with it, and shows nothing of the message.
func mustRefuse(t *testing.T, err error, column, says string) {
	t.Helper()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !slices.Contains([]string{"23514", "22001"}, pg.Code) || pg.ColumnName != column || !strings.Contains(pg.Message, says) {
		t.Errorf("%s: %v, want a refusal that says %q", column, err, says)
		return
	}
	if pg.Detail != "" || strings.Contains(pg.Where, "secret") || strings.Contains(pg.Where, `\x736563726574`) {
		t.Errorf("%s: the error shows the row: %s %s", column, pg.Detail, pg.Where)
	}
}

// TestEmptyKeyIsNone holds that SQL and Go agree on which messages have a key, and which.
func TestEmptyKeyIsNone(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		h.exec(`INSERT INTO @.messages (type, key, aggregate_type, aggregate_id) SELECT 't', '', 'order', g::text FROM generate_series(1, 50) g;
			INSERT INTO @.messages (type, key, aggregate_type, aggregate_id) VALUES ('t', '', 'order', ''), ('t', NULL, NULL, '7'), ('t', '', '', '')`)
		rows, err := h.pool.Query(t.Context(), h.in(`SELECT coalesce(key, ''), coalesce(aggregate_type, ''), coalesce(aggregate_id, ''),
			coalesce(@.order_key(key, aggregate_type, aggregate_id), ''),
			@.shard_of(key, aggregate_type, aggregate_id, id, 8) = @.shard_of(coalesce(@.order_key(key, aggregate_type, aggregate_id), id::text), 8)
			FROM @.messages`))
		if err != nil {
			t.Fatal(err)
		}
		var m postrider.Message
		var key string
		var ok bool
		n, keys := 0, map[string]bool{}
		_, err = pgx.ForEachRow(rows, []any{&m.Key, &m.AggregateType, &m.AggregateID, &key, &ok}, func() error {
			n++
			keys[key] = true
			if m.OrderKey() != key || !ok {
				t.Errorf("the key is %q in SQL and %q in Go; the shard is that of the key: %t", key, m.OrderKey(), ok)
			}
			return nil
		})
		if err != nil || n != 53 || len(keys) != 53 {
			t.Errorf("%v: %d messages with %d keys, want 53 and 53", err, n, len(keys))
		}
	})
}

// TestLongTextsOfOthers holds that messages of other senders, whom nobody limits, can be set aside, found and decided about.
func TestLongTextsOfOthers(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		store := must(postgres.NewInbox(h.pool, h.cfg))(t)
		must(store.Open(t.Context(), "billing"))(t)
		long := func() string { return storetest.Noise(9000) }
		first := postrider.Message{ID: postrider.NewID(), Type: long(), Key: long(), Topic: long(), TenantID: long()}
		second := first
		second.ID = postrider.NewID()
		for _, m := range []postrider.Message{first, second} {
			back := inbox.Setback{Status: postrider.StatusDead, Blocking: true, Attempts: 1, Cause: long()}
			if m.ID == second.ID {
				back = inbox.Setback{Status: postrider.StatusWaiting, Blocking: true}
			}
			if err := store.Defer(t.Context(), "billing", m, back); err != nil {
				t.Fatal(err)
			}
		}
		operator := must(postgres.NewDesk(h.pool, h.cfg))(t)
		dead := []postrider.Status{postrider.StatusDead}
		for name, f := range map[string]desk.Filter{"type": {Type: first.Type}, "key": {Key: first.Key}, "topic": {Topic: first.Topic}, "tenant": {Tenant: first.TenantID}} {
			f.Statuses = dead
			if got, err := operator.List(t.Context(), f, nil, 10); err != nil || len(got) != 1 || got[0].ID != first.ID {
				t.Errorf("by %s: %d found, %v", name, len(got), err)
			}
		}
		if keys, err := operator.Blocked(t.Context(), "", 10); err != nil || len(keys) != 1 || keys[0].Waiting != 1 {
			t.Errorf("blocked: %d keys, %v", len(keys), err)
		}
		if n, err := operator.Act(t.Context(), desk.By{Who: "test"}, desk.Discard, desk.Filter{Key: first.Key}, 0); n != 1 || err != nil {
			t.Errorf("discarded %d, %v", n, err)
		}
		if got, err := operator.List(t.Context(), desk.Filter{ID: second.ID}, nil, 10); err != nil || len(got) != 1 || got[0].Status != postrider.StatusRetry {
			t.Errorf("the one behind it: %d found, %v, want it to go on", len(got), err)
		}
	})
}

// BenchmarkLimits shows what limits cost those who write, as CPU time of the server process: single INSERTs of 256 bytes, with
// no check but the types of texts, with the trigger too, and with constraints instead of it. The server runs on this machine.
//
//	go test -run '^$' -bench Limits -benchtime 40x ./store/postgres
func BenchmarkLimits(b *testing.B) {
	pool := must(pgxpool.New(b.Context(), pgtest.Env(b, "POSTRIDER_TEST_POSTGRES18")))(b)
	b.Cleanup(pool.Close)
	bare := "DROP TRIGGER check_message ON @.messages;"
	constraints := "ALTER TABLE @.messages ADD CHECK (octet_length(payload) <= 16777216), ADD CHECK (jsonb_typeof(headers) = 'object')"
	for _, c := range limitedColumns {
		constraints += ", ADD CHECK (octet_length(" + c + ") BETWEEN 1 AND 1024)"
	}
	ways := []struct{ name, sql string }{{"nothing", bare}, {"trigger", ""}, {"constraints", bare + constraints}}
	schemas, took := make([]string, len(ways)), make([][]float64, len(ways))
	for i, w := range ways {
		schemas[i] = pgtest.Schema(b, pool, postgres.Layout{}).Schema
		if w.sql != "" {
			must(pool.Exec(b.Context(), strings.ReplaceAll(w.sql, "@.", schemas[i]+"."), pgx.QueryExecModeSimpleProtocol))(b)
		}
	}
	conn := must(pool.Acquire(b.Context()))(b)
	defer conn.Release()
	const each = 500
	must(conn.Exec(b.Context(), "SET synchronous_commit = off"))(b) // the disk is the same for all
	var process int
	if err := conn.QueryRow(b.Context(), "SELECT pg_backend_pid()").Scan(&process); err != nil {
		b.Fatal(err)
	}
	cpu := func() float64 {
		text := must(os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", process)))(b)
		return must(strconv.ParseFloat(strings.Fields(string(text))[0], 64))(b)
	}
	payload, headers := make([]byte, 256), `{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`
	run := func(i int) float64 {
		sql := "INSERT INTO " + schemas[i] + ".messages (type, aggregate_type, aggregate_id, topic, content_type, headers, payload) VALUES ($1, $2, $3, $4, $5, $6, $7)"
		begin := cpu()
		for n := range each {
			must(conn.Exec(b.Context(), sql, "order.placed", "order", strconv.Itoa(n), "orders", "application/json", headers, payload))(b)
		}
		return (cpu() - begin) / each / 1000
	}
	for i := range ways {
		run(i)
	}
	for b.Loop() {
		for i := range ways {
			took[i] = append(took[i], run(i))
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, w := range ways {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], w.name+"-µs")
	}
}
