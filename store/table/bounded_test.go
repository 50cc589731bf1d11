package table_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestReadsLookAtFewRows counts the rows that a read looks at in tables as teams have them, with the indexes that are proposed: among many
// that were delivered, in front of the last that wait, and where all of them wait. A read that looks at more with each row of the table ends in
// one that takes seconds.
func TestReadsLookAtFewRows(t *testing.T) {
	t.Parallel()
	doublings := 15
	if need.IsLong() {
		doublings = 21
	}
	const most = 8_000 // 80 messages are asked for, and 500 more are looked at, three times each
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		for _, each := range literalTables {
			t.Run(each.preset, func(t *testing.T) {
				s := open(t)
				s.DB.SetMaxOpenConns(1) // so that the session which reads is the one that counts
				if s.Dialect == table.PostgreSQL {
					mustExec(t, s.DB, "SET random_page_cost = 1.1") // as for disks without heads: else it looks at all rows of so small a table
				}
				tabletest.Migrate(t, s, table.Config{})
				p := adoptLiteral(t, s, &each)
				for _, r := range p.Missing {
					mustExec(t, s.DB, strings.Replace(r.SQL, "INDEX CONCURRENTLY", "INDEX", 1))
				}
				for range doublings {
					mustExec(t, s.DB, doubling(t, s, each.name))
				}
				analyze := map[table.Dialect]string{table.MySQL: "ANALYZE TABLE ", table.PostgreSQL: "ANALYZE "}[s.Dialect] + named(s, `"`+each.name+`"`)
				deliver := named(s, `UPDATE "`+each.name+`" SET `+strings.NewReplacer(" AND ", ", ", " IS NOT NULL", " = now()").Replace(each.published))
				newest := named(s, `SELECT id FROM (SELECT id FROM "`+each.name+`" ORDER BY "`+strings.Join(p.Layout.OrderBy, `" DESC, "`)+`" DESC LIMIT 100) newest`)
				for _, state := range []struct{ name, statement string }{
					{"all wait", analyze},
					{"the last 100 wait", deliver + " WHERE id NOT IN (" + newest + ")"},
					{"the last 100 wait, and the server knows", analyze},
					{"all delivered", deliver},
				} {
					mustExec(t, s.DB, state.statement)
					if s.Dialect == table.PostgreSQL && state.name == "the last 100 wait" {
						continue // it passes what was just updated until no transaction of the server can see it any more, also of other tests
					}
					feed, err := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: p.Layout}).Open(t.Context(), "default", feeds.Member{Name: "test", Lease: time.Minute})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := readSome(t, feed); err != nil { // prepares
						t.Fatal(err)
					}
					var looked int64
					for first, until := true, time.Now().Add(20*time.Second); first || looked > most && time.Now().Before(until); first = false {
						before, begin := rowsRead(t, s, each.name), time.Now()
						batches, err := readSome(t, feed)
						if err != nil {
							t.Fatal(err)
						}
						took := time.Since(begin)
						looked = rowsRead(t, s, each.name) - before
						messages := 0
						for i := range batches {
							messages += len(batches[i].Messages)
						}
						t.Logf("%d rows, %s: a read of %d messages looks at %d rows in %s", 1<<doublings, state.name, messages, looked, took.Round(time.Millisecond))
						if first && messages == 0 != (state.name == "all delivered") {
							t.Errorf("%s: a read of %d messages", state.name, messages)
						}
						time.Sleep(10 * time.Millisecond) // as above
					}
					if looked > most {
						t.Errorf("%s: a read has looked at %d rows, at most %d wanted", state.name, looked, most)
					}
					var marks []feeds.Mark
					for shard := range 8 {
						marks = append(marks, feeds.Mark{Shard: shard})
					}
					if err := errors.Join(feed.Release(t.Context(), marks), feed.Close(t.Context())); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	})
}

// doubling inserts all rows of a table again, with IDs of their own.
func doubling(t *testing.T, s tabletest.Server, tableName string) string {
	t.Helper()
	found, err := adopt.Inspect(t.Context(), s.DB, s.Dialect, tableName)
	if err != nil {
		t.Fatal(err)
	}
	var names, values []string
	for _, c := range found.Columns {
		name := named(s, `"`+c.Name+`"`)
		switch {
		case c.Name != "id" && c.Name != "dedup_key":
			values = append(values, name)
		case c.Counts:
			continue
		case s.Dialect == table.MySQL:
			values = append(values, "uuid()")
		default:
			values = append(values, "gen_random_uuid()")
		}
		names = append(names, name)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %[1]s", named(s, `"`+tableName+`"`), strings.Join(names, ", "), strings.Join(values, ", "))
}

// rowsRead is how many rows and entries of indexes of a table the session has looked at so far.
func rowsRead(t *testing.T, s tabletest.Server, tableName string) (n int64) {
	t.Helper()
	if s.Dialect == table.PostgreSQL {
		mustExec(t, s.DB, "SELECT pg_stat_force_next_flush()")
		err := s.DB.QueryRowContext(t.Context(), `SELECT seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid)
			FROM pg_stat_user_tables t WHERE schemaname = current_schema AND relname = $1`, tableName).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	rows := must(s.DB.QueryContext(t.Context(), "SHOW SESSION STATUS LIKE 'Handler_read%'"))(t)
	defer rows.Close()
	for rows.Next() {
		var name string
		var value int64
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		n += value
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}
