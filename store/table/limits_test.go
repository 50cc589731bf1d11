package table_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/storetest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestLimits holds that plain SQL cannot write more into our own table than the library can, and that the refusal names the column
// and shows nothing of the row.
func TestLimits(t *testing.T) {
	t.Parallel()
	places(t, table.Config{}, func(p *place) {
		for _, column := range []string{
			"type", "aggregate_type", "aggregate_id", "order_key", "topic", "routing_key", "tenant_id", "content_type", "schema_id", "dedup_key",
			"correlation_id", "causation_id",
		} {
			columns, values := "payload, type, "+column, "'secret', 't', "
			if column == "type" {
				columns, values = "payload, type", "'secret', "
			}
			for _, size := range []int{postrider.MaxText - 1, postrider.MaxText, postrider.MaxText + 1} {
				// In bytes: a character of two is the last one.
				_, err := p.DB.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO postrider_outbox (%s) VALUES (%s'%sü')", columns, values, storetest.Noise(size-2)))
				p.mustBe(size > postrider.MaxText, err, column)
			}
		}
		_, err := p.DB.ExecContext(t.Context(), "INSERT INTO postrider_outbox (payload, type) VALUES ('secret', '')")
		p.mustBe(true, err, "type")
	})
}

func (p *place) mustBe(refused bool, err error, column string) {
	p.Helper()
	if (err != nil) != refused || refused && (!strings.Contains(err.Error(), column) || strings.Contains(err.Error(), "secret")) {
		p.Errorf("%s: %v, want it refused: %t", column, err, refused)
	}
}

// TestBeyondTheLimits holds that a row of somebody else's table that is beyond the limits is a dead letter with its cause, and
// that the others of its shard go on.
func TestBeyondTheLimits(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		text := map[table.Dialect]string{table.MySQL: "longtext", table.PostgreSQL: "text"}[s.Dialect]
		cfg := table.Config{Dialect: s.Dialect, Shards: 1, Layout: table.Layout{
			Table: "theirs", ID: "id", OrderBy: []string{"id"}, Columns: table.Columns{Type: "kind", Key: "k", Payload: "body"},
			State: table.State{Status: "status", Pending: []string{"new"}, Published: "sent"},
		}}
		tabletest.Migrate(t, s, cfg)
		p := &place{t, s, cfg, newStore(t, s, cfg)}
		p.exec("CREATE TABLE theirs (id integer PRIMARY KEY, status varchar(20) NOT NULL DEFAULT 'new', kind " + text + ", k " + text + ", body " + text + ")")
		for i, v := range []string{
			"'t', 'a', '1'",
			"'t', '" + storetest.Noise(3200) + "', '2'", "'t', '" + storetest.Noise(70000) + "', '3'",
			"'" + storetest.Noise(postrider.MaxText+1) + "', 'a', '4'", "'', 'a', '5'",
			"'t', 'a', '6'",
		} {
			p.exec(fmt.Sprintf("INSERT INTO theirs (id, kind, k, body) VALUES (%d, %s)", i+1, v))
		}
		f := p.open(time.Minute)
		shards := p.shards(f, func(shards []int) bool { return len(shards) == 1 })
		var got []string
		for range 3 {
			for _, b := range p.read(f, shards) {
				for _, m := range b.Messages {
					got = append(got, string(m.Payload))
				}
			}
		}
		if strings.Join(got, " ") != "1 6" {
			t.Errorf("got %v, want 1 and 6", got)
		}
		db, err := table.Open(s.DB, cfg)
		p.must(err)
		operator := db.Admin()
		dead, err := operator.List(t.Context(), admin.Filter{Statuses: []feeds.Status{feeds.StatusDead}}, nil, 10)
		p.must(err)
		if len(dead) != 4 {
			t.Fatalf("%d dead letters, want 4", len(dead))
		}
		for i, says := range []string{"Key has 3200 bytes, more than 1024", "Key has 70000 bytes", "Type has 1025 bytes", "Type is empty"} {
			if !strings.Contains(dead[i].LastError, says) || dead[i].Blocking {
				t.Errorf("%q, blocking %t; want it to say %q, and to block nothing", dead[i].LastError, dead[i].Blocking, says)
			}
		}
		n, err := operator.Act(t.Context(), admin.By{Who: "test"}, admin.Discard, admin.Filter{}, 0)
		if n != 4 || err != nil {
			t.Errorf("discarded %d, %v", n, err)
		}
	})
}
