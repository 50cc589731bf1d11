package table_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// must turns a value and an error into a function that ends the test without the value.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func mustExec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

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
