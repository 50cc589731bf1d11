package table_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// literalTable is an outbox table as a team has written it down.
type literalTable struct {
	name, create, insert string
	preset               string
	want                 postrider.Message // what a consumer sees of the row
	published            string            // the condition of a row that was delivered
}

// literalTables are outbox tables as teams have written them down, with nothing added for us, a row, and what becomes of both.
var literalTables = []literalTable{
	{
		name: "outbox_events",
		create: `CREATE TABLE outbox_events (id %serial PRIMARY KEY, routing_key varchar(200), aggregate_type varchar(100), aggregate_id varchar(100), payload %json,
			status varchar(20) NOT NULL DEFAULT 'pending', attempts int NOT NULL DEFAULT 0, available_at %time NOT NULL DEFAULT now(), published_at %time NULL,
			last_error text, created_at %time NOT NULL DEFAULT now(), updated_at %time NOT NULL DEFAULT now())`,
		insert:    `INSERT INTO outbox_events (routing_key, aggregate_type, aggregate_id, payload) VALUES ('orders.created', 'order', '42', '{"n": 1}')`,
		preset:    "events-bigserial",
		want:      postrider.Message{Type: "orders.created", Topic: "orders.created", RoutingKey: "orders.created", AggregateType: "order", AggregateID: "42"},
		published: "status = 'published' AND published_at IS NOT NULL",
	},
	{
		name: "Outbox",
		create: `CREATE TABLE "Outbox" (id %uuid PRIMARY KEY, "eventType" varchar(100), payload text, "processedAt" timestamp NULL,
			"createdAt" timestamp NOT NULL DEFAULT now())`,
		insert:    `INSERT INTO "Outbox" (id, "eventType", payload) VALUES ('01900000-0000-7000-8000-000000000042', 'document_uploaded', '{"n": 1}')`,
		preset:    "prisma",
		want:      postrider.Message{Type: "document_uploaded"},
		published: `"processedAt" IS NOT NULL`,
	},
	{
		name: "outbox_events",
		create: `CREATE TABLE outbox_events (id %uuid PRIMARY KEY, aggregate_type varchar(50) NOT NULL, aggregate_id %uuid NOT NULL, event_type varchar(100) NOT NULL,
			payload %json NOT NULL, occurred_at %time NOT NULL DEFAULT now(), status varchar(20) DEFAULT 'PENDING', retry_count int DEFAULT 0,
			next_attempt_at %time NOT NULL DEFAULT now(), last_error text NULL, processed_at %time NULL)`,
		insert: `INSERT INTO outbox_events (id, aggregate_type, aggregate_id, event_type, payload)
			VALUES ('01900000-0000-7000-8000-000000000042', 'Order', '01900000-0000-7000-8000-000000000043', 'OrderPlaced', '{"n": 1}')`,
		preset:    "events-uuid",
		want:      postrider.Message{Type: "OrderPlaced", AggregateType: "Order", AggregateID: "01900000-0000-7000-8000-000000000043"},
		published: "status = 'PUBLISHED' AND processed_at IS NOT NULL",
	},
	{
		name: "outbox",
		create: `CREATE TABLE outbox (id varchar(36) PRIMARY KEY, tenant_id varchar(64) NOT NULL, aggregate_id varchar(128), aggregate_type varchar(100),
			topic varchar(128) NOT NULL, occurred_at %time NULL, payload %json NOT NULL, event_metadata %json NOT NULL, routing_key varchar(100), schema_id varchar(128),
			schema_version integer DEFAULT 1, status varchar(10) DEFAULT 'NEW', retry_count integer DEFAULT 0, retry_after %time NULL, error_message varchar(500),
			created_at %time NOT NULL DEFAULT now())`,
		insert: `INSERT INTO outbox (id, tenant_id, aggregate_id, aggregate_type, topic, payload, event_metadata, routing_key)
			VALUES ('01900000-0000-7000-8000-000000000042', 'acme', '42', 'order', 'orders', '{"n": 1}', '{"source": "shop"}', 'order.placed')`,
		preset: "bento",
		want: postrider.Message{Type: "order.placed", Topic: "orders", RoutingKey: "order.placed", AggregateType: "order", AggregateID: "42", TenantID: "acme",
			Headers: map[string]string{"source": "shop"}},
		published: "status = 'SENT'",
	},
	{
		name: "integration_event_outbox",
		create: `CREATE TABLE integration_event_outbox (id %serial PRIMARY KEY, type varchar(100), aggregate_type varchar(100), aggregate_id varchar(100),
			schema_version int, payload %json, dedup_key varchar(200) UNIQUE, status varchar(9) DEFAULT 'NEW' CHECK (status IN ('NEW', 'PENDING', 'PUBLISHED', 'FAILED')),
			attempts int DEFAULT 0, next_attempt_at %time NULL, priority int DEFAULT 0, occurred_at %time NULL, deliver_after %time NULL,
			created_at %time NOT NULL DEFAULT now(), updated_at %time NOT NULL DEFAULT now())`,
		insert: `INSERT INTO integration_event_outbox (type, aggregate_type, aggregate_id, schema_version, payload, dedup_key)
			VALUES ('EnrollmentCreated', 'Enrollment', '42', 1, '{"n": 1}', 'EnrollmentCreated:42:1')`,
		preset:    "integration-events",
		want:      postrider.Message{Type: "EnrollmentCreated", AggregateType: "Enrollment", AggregateID: "42"},
		published: "status = 'PUBLISHED'",
	},
}

// TestRowsOfAnOldWorker has rows as the worker that was there before leaves them: one whose next attempt is to come waits for it, one that
// has failed is tried again, and one without a routing key is told by its topic.
func TestRowsOfAnOldWorker(t *testing.T) {
	t.Parallel()
	bento := &literalTables[slices.IndexFunc(literalTables, func(l literalTable) bool { return l.preset == "bento" })]
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		tabletest.Migrate(t, s, table.Config{})
		p := adoptLiteral(t, s, bento)
		mustExec(t, s.DB, "DELETE FROM outbox")
		for i, row := range []string{
			"'NEW', NULL, now()", "'NEW', now() + INTERVAL '1' HOUR, now()", "'FAILED', now() - INTERVAL '1' HOUR, now()", "'DEAD', NULL, now()",
		} {
			mustExec(t, s.DB, fmt.Sprintf(`INSERT INTO outbox (id, tenant_id, topic, payload, event_metadata, error_message, status, retry_after, created_at)
				VALUES ('01900000-0000-7000-8000-00000000000%d', 'acme', 'orders', '{}', '{}', '', %s)`, i, row))
		}
		feed, err := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: p.Layout}).Open(t.Context(), "default", feeds.Member{Name: "test", Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var now, later []string
		for _, m := range deliverAll(t, feed) {
			if m.Type != "orders" {
				t.Errorf("the type is %q", m.Type)
			}
			if m.DeliverAfter.IsZero() {
				now = append(now, m.ID.String()[35:])
			} else {
				later = append(later, m.ID.String()[35:])
			}
		}
		slices.Sort(now)
		if !slices.Equal(now, []string{"0", "2"}) || !slices.Equal(later, []string{"1"}) {
			t.Errorf("to be sent now are %v, and later %v", now, later)
		}
	})
}

// TestLiteralTables adopts each of these tables as it stands, with what is proposed, delivers a row and finds it marked in the table's words.
func TestLiteralTables(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		for _, each := range literalTables {
			t.Run(each.preset, func(t *testing.T) {
				s := open(t)
				tabletest.Migrate(t, s, table.Config{})
				p := adoptLiteral(t, s, &each)
				if p.Preset != each.preset {
					t.Errorf("it was taken for %q", p.Preset)
				}
				store := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: p.Layout})
				feed, err := store.Open(t.Context(), "default", feeds.Member{Name: "test", Lease: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				got := deliverAll(t, feed)
				if len(got) != 1 {
					t.Fatalf("%d messages, want 1", len(got))
				}
				m, want := got[0], each.want
				seen := fmt.Sprint(m.Type, m.Topic, m.RoutingKey, m.AggregateType, m.AggregateID, m.TenantID, m.Headers)
				if seen != fmt.Sprint(want.Type, want.Topic, want.RoutingKey, want.AggregateType, want.AggregateID, want.TenantID, want.Headers) ||
					strings.ReplaceAll(string(m.Payload), " ", "") != `{"n":1}` {
					t.Errorf("got %+v\nwant %+v", m, want)
				}
				var marked int
				count := named(s, `SELECT count(*) FROM "`+each.name+`" WHERE `+each.published)
				if err := s.DB.QueryRowContext(t.Context(), count).Scan(&marked); err != nil || marked != 1 {
					t.Errorf("%d rows are marked as delivered, %v", marked, err)
				}
			})
		}
	})
}

// named names types and columns as a server does.
func named(s tabletest.Server, statement string) string {
	if s.Dialect == table.MySQL {
		statement = strings.ReplaceAll(statement, `"`, "`")
	}
	return kinds(s)(statement)
}

// adoptLiteral creates a table with its row, and returns what is proposed for it.
func adoptLiteral(t *testing.T, s tabletest.Server, given *literalTable) *adopt.Proposal {
	t.Helper()
	before, values, _ := strings.Cut(given.insert, "VALUES") // in which quotation marks are data
	return adoptedTable(t, s, given.name, named(s, given.create), named(s, before)+"VALUES"+values)
}

// deliverAll reads what a feed has and settles it.
func deliverAll(t *testing.T, feed feeds.Feed) (all []postrider.Message) {
	t.Helper()
	batches, err := readSome(t, feed)
	if err != nil {
		t.Fatal(err)
	}
	var marks []feeds.Mark
	for i := range batches {
		all = append(all, batches[i].Messages...)
		marks = append(marks, feeds.Mark{Shard: batches[i].Shard, Batch: &batches[i], Done: len(batches[i].Messages)})
	}
	if _, err := feed.Settle(t.Context(), marks); err != nil {
		t.Fatal(err)
	}
	return all
}
