package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/storetest"
)

// limitedColumns are the texts of a message.
var limitedColumns = []string{
	"type", "aggregate_type", "aggregate_id", "key", "topic", "routing_key", "tenant_id", "content_type", "schema_id", "dedup_key",
	"correlation_id", "causation_id",
}

// TestLimits verifies that no way into the log allows more than the library does.
func TestLimits(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
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
			for way, sql := range map[string]string{
				"INSERT":  "INSERT INTO @.messages (type, payload) VALUES ('t', convert_to(repeat('x', 200000000), 'UTF8'))",
				"enqueue": "SELECT @.enqueue('t', payload_bytes => convert_to(repeat('x', 200000000), 'UTF8'))",
			} {
				_, err := h.pool.Exec(t.Context(), h.in(sql))
				mustRefuse(t, way, err, "payload", "payload has 200000000 bytes, more than 16777216")
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
			mustBeTooLong(t, err, fmt.Sprintf("too long for type character varying(%d)", postrider.MaxText))
		}
		err := write(t.Context(), columns, append(slices.Clone(values), ""))
		if c == "type" {
			mustRefuse(t, way, err, "type", "type is empty")
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
			mustRefuse(t, way, err, "headers", says)
		} else if err != nil {
			t.Errorf("the largest headers: %v", err)
		}
	}
	if err := write(t.Context(), columns[:2], []any{"t", make([]byte, postrider.MaxPayload)}); err != nil {
		t.Errorf("the largest payload: %v", err)
	}
	mustRefuse(t, way, write(t.Context(), columns[:2], []any{"t", make([]byte, postrider.MaxPayload+1)}), "payload", "payload has 16777217 bytes, more than 16777216")
	mustRefuse(t, way, write(t.Context(), []string{"type", "payload"}, []any{nil, []byte("secret")}), "type", "type is empty")
	if way != "enqueue" { // which has two of them
		mustRefuse(t, way, write(t.Context(), []string{"type", "payload"}, []any{"t", nil}), "payload", "payload is empty")
	} else {
		mustRefuse(t, way, write(t.Context(), []string{"type", "payload", "schema_version"}, []any{"t", []byte("secret"), -1}), "schema_version", "schema_version is below 0")
	}
}

// mustRefuse checks that an error of enqueue names the column and the reason, that an error of the
// table itself names the rule, and that neither contains anything of the message.
func mustRefuse(t *testing.T, way string, err error, column, says string) {
	t.Helper()
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg) || pg.Code != "23514":
		t.Errorf("%s: %v, want a refusal that says %q", column, err, says)
	case way == "enqueue" && (pg.ColumnName != column || !strings.Contains(pg.Message, says) || pg.Detail != ""):
		t.Errorf("%s: %v %s, want a refusal that says %q", column, err, pg.Detail, says)
	case way != "enqueue" && !strings.Contains(pg.Detail, "octet_length(payload) <= 16777216"):
		t.Errorf("%s: %v %s, want the rule", column, err, pg.Detail)
	}
	mustHide(t, pg)
}

func mustBeTooLong(t *testing.T, err error, says string) {
	t.Helper()
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "22001" || !strings.Contains(pg.Message, says) {
		t.Errorf("%v, want %q", err, says)
	}
	mustHide(t, pg)
}

func mustHide(t *testing.T, pg *pgconn.PgError) {
	t.Helper()
	if shown := fmt.Sprintf("%+v", pg); strings.Contains(shown, "secret") || strings.Contains(shown, `\x736563726574`) {
		t.Errorf("the error shows the row: %s", shown)
	}
}

// TestEmptyKeyIsNone verifies that SQL and Go agree on the key of every message.
func TestEmptyKeyIsNone(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
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

// TestLongTextsOfOthers verifies that messages of other senders, which are not limited, can be
// deferred, found and acted on.
func TestLongTextsOfOthers(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, still)
		store := h.db.Inbox()
		must(store.Open(t.Context(), "billing"))(t)
		long := func() string { return storetest.Noise(9000) }
		first := postrider.Message{ID: postrider.NewID(), Type: long(), Key: long(), Topic: long(), TenantID: long()}
		second := first
		second.ID = postrider.NewID()
		for _, m := range []postrider.Message{first, second} {
			back := inbox.Deferral{Status: feeds.StatusDead, Blocking: true, Attempts: 1, Cause: long()}
			if m.ID == second.ID {
				back = inbox.Deferral{Status: feeds.StatusWaiting, Blocking: true}
			}
			if err := store.Defer(t.Context(), "billing", m, back); err != nil {
				t.Fatal(err)
			}
		}
		operator := h.db.Admin()
		dead := []feeds.Status{feeds.StatusDead}
		for name, f := range map[string]admin.Filter{"type": {Type: first.Type}, "key": {Key: first.Key}, "topic": {Topic: first.Topic}, "tenant": {Tenant: first.TenantID}} {
			f.Statuses = dead
			if got, err := operator.List(t.Context(), f, nil, 10); err != nil || len(got) != 1 || got[0].ID != first.ID {
				t.Errorf("by %s: %d found, %v", name, len(got), err)
			}
		}
		if keys, err := operator.Blocked(t.Context(), "", 10); err != nil || len(keys) != 1 || keys[0].Waiting != 1 {
			t.Errorf("blocked: %d keys, %v", len(keys), err)
		}
		if n, err := operator.Act(t.Context(), admin.By{Who: "test"}, admin.Discard, admin.Filter{Key: first.Key}, 0); n != 1 || err != nil {
			t.Errorf("discarded %d, %v", n, err)
		}
		if got, err := operator.List(t.Context(), admin.Filter{ID: second.ID}, nil, 10); err != nil || len(got) != 1 || got[0].Status != feeds.StatusRetry {
			t.Errorf("the one behind it: %d found, %v, want it to go on", len(got), err)
		}
	})
}
