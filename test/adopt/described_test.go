package adopt_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// described is an outbox table as an application defines it.
type described struct {
	preset string
	table  string
	// columns lists the columns that the producer fills, in the order of row.
	columns []string
	row     func(e event) []any
	// SQL conditions on the table's own columns
	waits, published, failed string
	attempts, lastError      string
	// wire returns the message ID that the broker receives for a row, in a database with an
	// identity.
	wire func(identity, rowID string) string
}

// event is an event that a producer publishes.
type event struct {
	aggregate string
	n         int // within the aggregate, from 1
	kind      string
	id        postrider.ID
}

func (e event) payload() string { return fmt.Sprintf(`{"n": %d, "of": %q}`, e.n, e.aggregate) }

// cuid returns an identifier like Prisma's: text that sorts by creation.
func (e event) cuid() string { return "c" + strings.ReplaceAll(e.id.String(), "-", "")[:24] }

func sameID(_, rowID string) string { return rowID }

var all = []described{
	{
		preset: "events-bigserial", table: "outbox_events",
		columns: []string{"aggregate_type", "aggregate_id", "event_type", "routing_key", "payload"},
		row: func(e event) []any {
			return []any{"order", e.aggregate, e.kind, "orders." + e.kind, e.payload()}
		},
		waits:     "status IN ('pending', 'processing')",
		published: "status = 'published' AND published_at IS NOT NULL AND attempts = 0 AND last_error IS NULL",
		failed:    "status = 'failed' AND published_at IS NULL",
		attempts:  "attempts", lastError: "last_error",
		wire: func(identity, rowID string) string { return "outbox-" + identity[:8] + "-" + rowID },
	},
	{
		preset: "prisma", table: "Outbox",
		columns: []string{"id", "aggregateType", "aggregateId", "eventType", "payload", "createdAt"},
		row: func(e event) []any { // Prisma sets the time when it writes the row
			return []any{e.cuid(), "order", e.aggregate, e.kind, e.payload(), time.Now().UTC()}
		},
		waits:     "$processedAt$ IS NULL AND attempts = 0",
		published: "$processedAt$ IS NOT NULL AND attempts = 0 AND $lastError$ IS NULL",
		failed:    "$processedAt$ IS NULL AND attempts > 0",
		attempts:  "attempts", lastError: "lastError",
		wire: func(identity, rowID string) string { return table.DerivedID(identity, "Outbox", rowID).String() },
	},
	{
		preset: "events-uuid", table: "outbox_events",
		columns: []string{"id", "aggregate_id", "event_type", "payload"},
		row: func(e event) []any {
			return []any{e.id.String(), e.aggregate, e.kind, e.payload()}
		},
		waits:     "status = 'PENDING'",
		published: "status = 'PUBLISHED' AND published_at IS NOT NULL AND retry_count = 0 AND error_message IS NULL",
		failed:    "status = 'FAILED' AND published_at IS NULL",
		attempts:  "retry_count", lastError: "error_message",
		wire: sameID,
	},
	{
		preset: "integration-events", table: "integration_event_outbox",
		columns: []string{"type", "aggregate_type", "aggregate_id", "payload", "metadata", "dedup_key"},
		row: func(e event) []any {
			return []any{e.kind, "order", e.aggregate, e.payload(), `{"source": "shop"}`, fmt.Sprintf("order:%s:%d", e.aggregate, e.n)}
		},
		waits:     "status IN ('pending', 'processing')",
		published: "status = 'published' AND published_at IS NOT NULL AND attempts = 0 AND last_error IS NULL",
		failed:    "status = 'failed' AND published_at IS NULL",
		attempts:  "attempts", lastError: "last_error",
		wire: func(identity, rowID string) string {
			return table.DerivedID(identity, "integration_event_outbox", rowID).String()
		},
	},
	{
		preset: "bento", table: "outbox",
		columns: []string{"id", "tenant_id", "topic", "aggregate_id", "type", "payload", "headers"},
		row: func(e event) []any {
			return []any{e.id.String(), "acme", "orders", e.aggregate, e.kind, e.payload(), `{"source": "shop"}`}
		},
		waits:     "status IN ('NEW', 'PUBLISHING')",
		published: "status = 'SENT' AND sent_at IS NOT NULL AND attempts = 0 AND last_error IS NULL",
		failed:    "status = 'DEAD' AND sent_at IS NULL",
		attempts:  "attempts", lastError: "last_error",
		wire: sameID,
	},
}

// debezium has no state column: delivered rows are deleted.
var debezium = described{
	preset: "debezium", table: "outbox",
	columns: []string{"id", "aggregatetype", "aggregateid", "type", "payload"},
	row: func(e event) []any {
		return []any{e.id.String(), "order", e.aggregate, e.kind, e.payload()}
	},
	wire: sameID,
}

// layout describes the table to the classic store.
func (d *described) layout(t testing.TB) table.Layout {
	t.Helper()
	p, ok := adopt.PresetNamed(d.preset)
	if !ok {
		t.Fatalf("there is no preset %s", d.preset)
	}
	return p.Layout
}

// create creates the table as an application would.
func (d *described) create(t testing.TB, s tabletest.Server) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + d.preset + "." + string(s.Dialect) + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%v\n%s", err, statement)
		}
	}
}

// quoted replaces names between dollar signs by names in the server's quotes.
func quoted(d table.Dialect, condition string) string {
	if d == table.MySQL {
		return strings.ReplaceAll(condition, "$", "`")
	}
	return strings.ReplaceAll(condition, "$", `"`)
}

func quote(d table.Dialect, name string) string { return quoted(d, "$"+name+"$") }

// insert returns the INSERT statement of a producer, with additional columns.
func (d *described) insert(dialect table.Dialect, more ...string) string {
	var names, places []string
	for i, name := range append(append([]string{}, d.columns...), more...) {
		names = append(names, quote(dialect, name))
		if dialect == table.MySQL {
			places = append(places, "?")
		} else {
			places = append(places, fmt.Sprintf("$%d", i+1))
		}
	}
	return "INSERT INTO " + quote(dialect, d.table) + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(places, ", ") + ")"
}

// each runs a test for every described table on PostgreSQL and on MariaDB.
func each(t *testing.T, tables []described, test func(t *testing.T, d described, s tabletest.Server)) {
	for i, d := range tables {
		t.Run(d.preset, func(t *testing.T) {
			t.Run("postgres", func(t *testing.T) {
				t.Parallel() // mostly waiting
				version := []string{"15", "18"}[i%2]
				test(t, d, tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES"+version)))
			})
			t.Run("mariadb", func(t *testing.T) {
				t.Parallel()
				test(t, d, tabletest.MariaDB(t))
			})
		})
	}
}

func named(t testing.TB, preset string) described {
	t.Helper()
	for _, d := range all {
		if d.preset == preset {
			return d
		}
	}
	t.Fatalf("%s is not described", preset)
	return described{}
}
