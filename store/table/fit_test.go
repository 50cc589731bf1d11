package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestUnfitTables refuses tables whose rows could not be told apart, or could not be marked, before a message is sent.
func TestUnfitTables(t *testing.T) {
	t.Parallel()
	const columns = "aggregate_id varchar(64) NULL, type varchar(64) NOT NULL DEFAULT 'x', payload {json} NULL, tenant varchar(64) NOT NULL, "
	words := func(pending, published, dead string) table.Layout {
		l := tenanted
		l.State = table.State{Status: "status", Pending: []string{pending}, Published: published, Dead: dead}
		return l
	}
	plain := words("pending", "sent", "dead")
	const status = "status varchar(16) NOT NULL"
	for name, x := range map[string]struct {
		table  string
		layout table.Layout
		wrong  []string // nothing if it is fit
	}{
		"key of two columns":       {"id bigint NOT NULL, " + status + ", PRIMARY KEY (tenant, id)", plain, []string{`the ID "id" of table outbox is not unique`, "(the primary key is tenant, id)", "CREATE UNIQUE INDEX"}},
		"a plain index":            {"id bigint NOT NULL, " + status + ", PRIMARY KEY (tenant, id), {index}", plain, []string{`the ID "id" of table outbox is not unique`}},
		"a unique index":           {"id bigint NOT NULL, " + status + ", PRIMARY KEY (tenant, id), UNIQUE (id)", plain, nil},
		"a number that is counted": {"id {serial}, " + status + ", PRIMARY KEY (id, tenant)", plain, nil},
		"a UUID":                   {"id {16} NOT NULL, " + status + ", PRIMARY KEY (tenant, id)", plain, nil},
		"too short":                {"id bigint PRIMARY KEY, status varchar(8) NOT NULL", words("pending", "published", "dead"), []string{`cannot hold the word "published" for published rows`, "(8)", "status: {published: WORD}"}},
		"long enough":              {"id bigint PRIMARY KEY, status varchar(9) NOT NULL", words("pending", "published", "dead"), nil},
		"too short, characters":    {"id bigint PRIMARY KEY, status char(4) NOT NULL", words("PEND", "SENT", "FAILED"), []string{`cannot hold the word "FAILED" for dead rows`}},
		"enum without the word":    {"id bigint PRIMARY KEY, status {enum} NOT NULL", words("pending", "sent", "dead"), []string{`cannot hold the word "dead"`, `it allows "pending", "sent"`}},
		"enum":                     {"id bigint PRIMARY KEY, status {enum} NOT NULL", words("pending", "sent", ""), nil},
		"check without the word":   {"id bigint PRIMARY KEY, status varchar(16) NOT NULL CHECK (status IN ('pending', 'sent', 'failed'))", words("pending", "sent", "dead"), []string{`cannot hold the word "dead"`}},
		"check":                    {"id bigint PRIMARY KEY, status varchar(16) NOT NULL CHECK (status IN ('pending', 'sent', 'dead'))", plain, nil},
		"check of something else":  {"id bigint PRIMARY KEY, status varchar(16) NOT NULL CHECK (status NOT IN ('gone', 'lost'))", plain, nil},
		"a number":                 {"id bigint PRIMARY KEY, status smallint NOT NULL", words("0", "sent", "2"), []string{`cannot hold the word "sent"`}},
		"numbers":                  {"id bigint PRIMARY KEY, status smallint NOT NULL", words("0", "1", "2"), nil},
		"a yes or no":              {"id bigint PRIMARY KEY, status {bool} NOT NULL", words("0", "1", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
				s := open(t)
				p := &place{T: t, Server: s}
				kinds := []string{"{serial}", "bigint NOT NULL AUTO_INCREMENT", "{enum}", "enum('pending', 'sent')", "{bool}", "tinyint(1)", "{16}", "binary(16)", "{index}", "KEY (id)"}
				if s.Dialect == table.PostgreSQL {
					p.exec("CREATE TYPE delivery AS ENUM ('pending', 'sent')")
					kinds = []string{"{serial}", "bigserial", "{enum}", "delivery", "{bool}", "boolean", "{16}", "uuid", "{index}", "CHECK (id > 0)"}
				}
				statement := strings.NewReplacer(kinds...).Replace(columnsOf(s.Dialect, "CREATE TABLE outbox ("+columns+x.table+")"))
				p.exec(statement)
				tabletest.Migrate(t, s, table.Config{Layout: x.layout})
				feed, err := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: x.layout}).
					Open(t.Context(), "feed", feeds.Member{Name: "relay", Lease: time.Minute})
				if err == nil {
					p.must(feed.Close(t.Context()))
				}
				if (err != nil) != (x.wrong != nil) {
					t.Fatalf("opened: %v, want %q", err, x.wrong)
				}
				for _, want := range x.wrong {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error %q does not say %q", err, want)
					}
				}
				found, err := adopt.Inspect(t.Context(), s.DB, s.Dialect, "outbox")
				p.must(err)
				if _, err := adopt.Propose(found); (err != nil) != (x.wrong != nil && strings.Contains(x.wrong[0], "unique")) {
					t.Errorf("proposed: %v", err)
				}
			})
		})
	}
}
