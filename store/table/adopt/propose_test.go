package adopt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/internal/catalog"
	"github.com/postrider/postrider/store/table/tabletest"
)

// adoptedTable creates tables, and proposes how to adopt one.
func adoptedTable(t *testing.T, s tabletest.Server, tableName string, statements ...string) *adopt.Proposal {
	t.Helper()
	for _, statement := range statements {
		if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	found, err := adopt.Inspect(t.Context(), s.DB, s.Dialect, tableName)
	if err != nil {
		t.Fatal(err)
	}
	p, err := adopt.Propose(found)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// kinds names types as a server does.
func kinds(s tabletest.Server) func(string) string {
	words := []string{"%uuid", "uuid", "%time", "timestamptz", "%text", "text", "%json", "jsonb", "%bytes", "bytea", "%serial", "bigserial"}
	if s.Dialect == table.MySQL {
		words = []string{"%uuid", "char(36)", "%time", "timestamp(6)", "%text", "varchar(200)", "%json", "json", "%bytes", "longblob",
			"%serial", "bigint NOT NULL AUTO_INCREMENT", "timestamp NOT NULL DEFAULT now()", "timestamp NOT NULL DEFAULT now()", "DEFAULT now()", "DEFAULT now(6)"}
	}
	return strings.NewReplacer(words...).Replace
}

// TestProposePresets recognises a table by each preset, whatever it is called.
func TestProposePresets(t *testing.T) {
	t.Parallel()
	tables := map[string]string{
		"events-bigserial": `id %serial PRIMARY KEY, aggregate_type %text, aggregate_id %text, event_type %text, routing_key %text, payload %json,
			status varchar(20) NOT NULL DEFAULT 'pending', attempts int, available_at %time NOT NULL DEFAULT now(), published_at %time NULL,
			last_error %text, created_at %time NOT NULL DEFAULT now()`,
		"prisma": `id %text PRIMARY KEY, "aggregateType" %text, "aggregateId" %text, "eventType" %text, payload %json,
			"createdAt" %time NOT NULL DEFAULT now(), "processedAt" %time NULL, attempts int, "lastError" %text`,
		"events-uuid": `id %uuid PRIMARY KEY, aggregate_id %text, event_type %text, payload %json, status varchar(20) NOT NULL DEFAULT 'PENDING',
			retry_count int, error_message %text, created_at %time NOT NULL DEFAULT now(), published_at %time NULL`,
		"integration-events": `id %serial PRIMARY KEY, type %text, aggregate_type %text, aggregate_id %text, schema_version int, payload %json,
			metadata %json, dedup_key %text, priority int, deliver_after %time NULL, occurred_at %time NOT NULL DEFAULT now(),
			status varchar(20) NOT NULL DEFAULT 'pending', attempts int, next_attempt_at %time NULL, last_error %text, published_at %time NULL`,
		"bento": `id %uuid PRIMARY KEY, tenant_id %text, topic %text, aggregate_id %text, type %text, payload %json, headers %json,
			status varchar(16) NOT NULL DEFAULT 'NEW', attempts int, retry_after %time NULL, last_error %text,
			created_at %time NOT NULL DEFAULT now(), sent_at %time NULL`,
		"debezium": `id %uuid PRIMARY KEY, aggregatetype %text, aggregateid %text, type %text, payload %json`,
		"watermill": `"offset" %serial PRIMARY KEY, uuid varchar(36) NOT NULL, created_at %time NOT NULL DEFAULT now(), payload %json,
			metadata %json`,
		"open-outbox": `event_id %uuid PRIMARY KEY, event_type %text, partition_key %text, payload %bytes, headers %json,
			status varchar(20) NOT NULL DEFAULT 'PENDING', attempts int, last_error %text, available_at %time NOT NULL DEFAULT now(),
			locked_by %text, locked_at %time NULL, delivered_at %time NULL, created_at %time NOT NULL DEFAULT now(),
			updated_at %time NOT NULL DEFAULT now()`,
	}
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		tabletest.Migrate(t, s, table.Config{})
		for _, preset := range adopt.Presets() {
			columns, ok := tables[preset.Name]
			if !ok {
				t.Fatalf("no table for the preset %s", preset.Name)
			}
			name := "adopt_" + strings.ReplaceAll(preset.Name, "-", "_")
			create := kinds(s)(fmt.Sprintf("CREATE TABLE %s (%s)", name, columns))
			if s.Dialect == table.MySQL {
				create = strings.ReplaceAll(create, `"`, "`")
			}
			p := adoptedTable(t, s, name, create)
			if p.Preset != preset.Name {
				t.Errorf("the table of %s was taken for %q", preset.Name, p.Preset)
			}
			got, want := p.Layout, preset.Layout
			got.Table, got.DefaultType, got.DefaultTopic, got.DefaultContentType = want.Table, want.DefaultType, want.DefaultTopic, want.DefaultContentType
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s:\n  proposed %+v\n  preset   %+v", preset.Name, got, want)
			}
			runRemedies(t, s, name, p)
		}
	})
}

// runRemedies makes sure that every statement can be run, and that nothing is missing afterwards.
func runRemedies(t *testing.T, s tabletest.Server, name string, p *adopt.Proposal) {
	t.Helper()
	for _, r := range p.Missing {
		// It would wait for every transaction of the server, also those of other tests.
		statement := strings.Replace(r.SQL, "INDEX CONCURRENTLY", "INDEX", 1)
		if s.Dialect == table.PostgreSQL && strings.HasPrefix(r.SQL, "CREATE INDEX") && statement == r.SQL {
			t.Errorf("%s: %s keeps producers waiting", name, r.SQL)
		}
		if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %s: %v", name, r.SQL, err)
		}
	}
	found, err := adopt.Inspect(t.Context(), s.DB, s.Dialect, name)
	if err != nil {
		t.Fatal(err)
	}
	again, err := adopt.Propose(found)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Missing) > 0 {
		t.Errorf("%s: still missing: %+v", name, again.Missing)
	}
	// The engine takes the layout, and its statements can be run.
	opened, err := table.Open(s.DB, table.Config{Dialect: s.Dialect, Layout: again.Layout})
	if err != nil {
		t.Fatal(err)
	}
	store := opened.Feeds()
	feed, err := store.Open(t.Context(), name, feeds.Member{Name: "test", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readSome(t, feed); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if err := feed.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// readSome takes the shards that are free, and reads what they have.
func readSome(t *testing.T, feed feeds.Feed) ([]feeds.Batch, error) {
	t.Helper()
	share, err := feed.Balance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want []feeds.Demand
	for _, shard := range share.Shards {
		want = append(want, feeds.Demand{Shard: shard, Limit: 10})
	}
	return feed.Read(t.Context(), want)
}

// TestProposeHostileNames adopts a table whose names need every kind of quoting.
func TestProposeHostileNames(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		tabletest.Migrate(t, s, table.Config{})
		quote, name := `"`, `select "from" 'it''s`
		if s.Dialect == table.MySQL {
			quote, name = "`", "select `from` 'it''s"
		}
		q := func(name string) string { return quote + strings.ReplaceAll(name, quote, quote+quote) + quote }
		p := adoptedTable(t, s, name, kinds(s)("CREATE TABLE "+q(name)+" ("+q("ID")+" %serial PRIMARY KEY, "+q("Event Type")+" %text, "+q("aggregate-id")+
			" %text, "+q("order")+" int, "+q("what?")+" int, payload %json, "+q("Status")+" varchar(9) NOT NULL DEFAULT 'it''s new', "+q("group")+" int)"),
			"INSERT INTO "+q(name)+" ("+q("Status")+", payload) VALUES ('it''s new', '{}'), ('Done', '{}')")
		l := p.Layout
		if l.ID != "ID" || l.Columns.Type != "Event Type" || l.Columns.AggregateID != "aggregate-id" || l.State.Status != "Status" ||
			!slices.Equal(l.State.Pending, []string{"it's new"}) || l.State.Published != "Done" {
			t.Errorf("%+v", l)
		}
		if !slices.Equal(p.Unused, []string{"order", "what?", "group"}) {
			t.Errorf("unused: %q", p.Unused)
		}
		runRemedies(t, s, name, p)
	})
}

// TestProposeUnknown adopts tables that no preset describes.
func TestProposeUnknown(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		tabletest.Migrate(t, s, table.Config{})
		k := kinds(s)
		p := adoptedTable(t, s, "flagged", k(`CREATE TABLE flagged (id %serial PRIMARY KEY, name %text, data %json, published boolean NOT NULL DEFAULT false)`))
		want := map[table.Dialect]string{table.MySQL: "0 1", table.PostgreSQL: "false true"}[s.Dialect]
		if l := p.Layout; l.State.Status != "published" || l.State.Pending[0]+" "+l.State.Published != want || l.DefaultType != "flagged" {
			t.Errorf("%+v", l)
		}
		if !warns(p, "no-key") || warns(p, "order-clock") {
			t.Errorf("%+v", p.Warnings)
		}
		runRemedies(t, s, "flagged", p)

		p = adoptedTable(t, s, "clocked", k(`CREATE TABLE clocked (id %uuid PRIMARY KEY, event_type %text, entity_id %text, body %bytes,
			created_at %time NOT NULL DEFAULT now(), state varchar(10) NOT NULL DEFAULT 'NEW' CHECK (state IN ('NEW', 'DONE', 'ERROR', 'HOLD')))`))
		if l := p.Layout; l.State.Published != "DONE" || l.State.Processing != "" || l.State.Dead != "ERROR" || l.OrderBy[0] != "created_at" {
			t.Errorf("%+v", l)
		}
		for _, about := range []string{"order-clock", "late-commit", "old-relay", "status-words", "payload"} {
			if !warns(p, about) {
				t.Errorf("no warning %s in %+v", about, p.Warnings)
			}
		}
		runRemedies(t, s, "clocked", p)

		p = adoptedTable(t, s, "bare", k(`CREATE TABLE bare (id %uuid PRIMARY KEY, kind %text, payload %json)`))
		if !p.Layout.State.Delete || !warns(p, "deletes") || !warns(p, "order-id") {
			t.Errorf("%+v", p)
		}
		for _, statement := range []string{"CREATE TABLE keyless (id int, payload text)", "CREATE TABLE bodiless (id int PRIMARY KEY, n int)"} {
			if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			found, err := adopt.Inspect(t.Context(), s.DB, s.Dialect, strings.Fields(statement)[2])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := adopt.Propose(found); !errors.Is(err, adopt.ErrNotAnOutbox) {
				t.Errorf("%s: %v", statement, err)
			}
		}
		if _, err := adopt.Inspect(t.Context(), s.DB, s.Dialect, "nowhere"); !errors.Is(err, adopt.ErrNoTable) {
			t.Errorf("a table that is not there: %v", err)
		}
	})
}

func warns(p *adopt.Proposal, about string) bool {
	return slices.ContainsFunc(p.Warnings, func(w adopt.Warning) bool { return w.About == about })
}

// TestProposalsAreValid makes tables of any columns, types and words: what is proposed for them is valid, or they are no outbox.
func TestProposalsAreValid(t *testing.T) {
	t.Parallel()
	names := []string{"id", "event_id", "uuid", "offset", "type", "eventType", "payload", "data", "status", "state", "published", "processed_at",
		"available_at", "retry_after", "created_at", "attempts", "last_error", "locked_at", "aggregate_id", "key", "metadata", "topic", "what?", "{now}"}
	types := []string{"bigint", "integer", "uuid", "text", "varchar(20)", "jsonb", "json", "bytea", "boolean", "tinyint(1)", "enum",
		"timestamp with time zone", "datetime(6)", "numeric", "char(36)", "xid8"}
	words := []string{"pending", "NEW", "Sent", "PUBLISHED", "failed", "dead", "processing", "?", "{id}", "", "7", "published", "error", "hold"}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same tables every time
	pick := func(from []string) []string {
		var some []string
		for range random.IntN(6) {
			some = append(some, from[random.IntN(len(from))])
		}
		return some
	}
	good := 0
	for range 20_000 {
		found := &adopt.Table{Dialect: table.MySQL, Name: "t", Words: make(map[string][]string)}
		if random.IntN(2) == 0 {
			found.Dialect = table.PostgreSQL
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names[:1+random.IntN(len(names))] {
			c := catalog.Column{Name: name, Type: types[random.IntN(len(types))], Nullable: random.IntN(2) == 0, Counts: random.IntN(9) == 0}
			if random.IntN(3) == 0 {
				c.Default = "'" + words[random.IntN(len(words))] + "'"
			}
			if random.IntN(4) == 0 {
				c.Allowed = pick(words)
			}
			found.Columns, found.Words[name] = append(found.Columns, c), pick(words)
		}
		found.PrimaryKey = []string{found.Columns[random.IntN(len(found.Columns))].Name}
		found.Indexes = []catalog.Index{{Name: "p", Columns: found.PrimaryKey, Unique: true}}
		p, err := adopt.Propose(found)
		if errors.Is(err, adopt.ErrNotAnOutbox) {
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%+v", err, found)
		}
		if err := p.Layout.Validate(); err != nil {
			t.Fatalf("%v\n%+v", err, found)
		}
		good++
	}
	if good < 1000 {
		t.Errorf("only %d of the tables were outboxes", good)
	}
}
