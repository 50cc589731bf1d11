package table_test

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestDeleteWaitsForNobody has a table whose rows are deleted once they are delivered, and a producer that takes its time: the
// database must not look for the rows where his are.
func TestDeleteWaitsForNobody(t *testing.T) {
	layout := table.Layout{Table: "tasks", ID: "id", OrderBy: []string{"n"}, DefaultType: "task", Columns: table.Columns{Payload: "body"}}
	for name, id := range map[string]string{"number": "bigint", "text": "varchar(36)"} {
		t.Run(name, func(t *testing.T) {
			tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
				a := adoptAs(t, open(t), `CREATE TABLE tasks (id `+id+` PRIMARY KEY, n bigint NOT NULL, body text NOT NULL)`, layout)
				a.exec(`INSERT INTO tasks VALUES ('1', 1, 'one'), ('2', 2, 'two'), ('3', 3, 'three')`)
				producer, err := a.DB.BeginTx(t.Context(), nil)
				a.must(err)
				defer producer.Rollback() // that is all it is for
				_, err = producer.ExecContext(t.Context(), `INSERT INTO tasks VALUES ('20', 4, 'four')`)
				a.must(err)

				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var marks []feeds.Mark
				for _, b := range a.read() {
					marks = append(marks, feeds.Mark{Shard: b.Shard, Batch: &b, Done: len(b.Messages)})
				}
				if _, err := a.feed.Settle(ctx, marks); err != nil {
					t.Fatal(err)
				}
				a.expectRows(`SELECT id FROM tasks`)
			})
		})
	}
}
