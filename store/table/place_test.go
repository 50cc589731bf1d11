package table_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// place is the table of our own, on some server.
type place struct {
	*testing.T
	tabletest.Server
	cfg   table.Config
	store feedStore
}

// places runs f over each server.
func places(t *testing.T, cfg table.Config, f func(p *place)) {
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s, cfg := open(t), cfg
		cfg.Dialect = s.Dialect
		tabletest.Migrate(t, s, cfg)
		f(&place{t, s, cfg, newStore(t, s, cfg)})
	})
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) exec(statement string) {
	p.Helper()
	_, err := p.DB.ExecContext(p.Context(), statement)
	p.must(err)
}

// rows returns the values of a query's only column.
func (p *place) rows(query string) (values []string) {
	p.Helper()
	rows, err := p.DB.QueryContext(p.Context(), query)
	p.must(err)
	defer rows.Close()
	for rows.Next() {
		var v sql.NullString
		p.must(rows.Scan(&v))
		values = append(values, v.String)
	}
	p.must(rows.Err())
	return values
}

// write enqueues n messages of a key.
func (p *place) write(key string, n int) {
	p.Helper()
	tx := begin(p, p.Server, p.cfg)
	for i := range n {
		p.must(tx.Enqueue(p.Context(), postrider.Event("test.happened", postrider.Aggregate{Type: "test", ID: key}, i)))
	}
	p.must(tx.Commit())
}

func (p *place) open(lease time.Duration) feeds.Feed {
	p.Helper()
	f, err := p.store.Open(p.Context(), "feed", feeds.Member{Name: p.Name(), Lease: lease})
	p.must(err)
	p.Cleanup(func() { _ = f.Close(context.WithoutCancel(p.Context())) })
	return f
}

// joined opens the feed and waits for all its shards.
func (p *place) joined(lease time.Duration) (feeds.Feed, []int) {
	p.Helper()
	f := p.open(lease)
	return f, p.shards(f, func(shards []int) bool { return len(shards) == 8 })
}

// shards balances until the member holds what it is to hold.
func (p *place) shards(f feeds.Feed, enough func(shards []int) bool) []int {
	p.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		share, err := f.Balance(p.Context())
		p.must(err)
		if enough(share.Shards) {
			return share.Shards
		}
		if time.Now().After(until) {
			p.Fatalf("the member holds %v", share.Shards)
		}
	}
}

// read reads, and gives up if it has to wait.
func (p *place) read(f feeds.Feed, shards []int) []feeds.Batch {
	p.Helper()
	var want []feeds.Demand
	for _, s := range shards {
		want = append(want, feeds.Demand{Shard: s, Limit: 100})
	}
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	defer cancel()
	batches, err := f.Read(ctx, want)
	p.must(err)
	return batches
}

// lockRows locks rows, as an application or an operator may, until the function that it returns is called.
func (p *place) lockRows(query string) (unlock func()) {
	p.Helper()
	tx, err := p.DB.BeginTx(p.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	p.must(err)
	rows, err := tx.QueryContext(p.Context(), query+" FOR UPDATE")
	p.must(err)
	for rows.Next() {
	}
	p.must(rows.Err())
	p.must(rows.Close()) //nolint:sqlclosecheck // the transaction goes on
	return func() { p.must(tx.Rollback()) }
}

// payloads are those of the batches, in their order.
func payloads(batches []feeds.Batch) string {
	var all []string
	for _, b := range batches {
		for i := range b.Messages {
			m := &b.Messages[i]
			all = append(all, fmt.Sprint(m.AggregateID, m.Payload))
		}
	}
	return strings.Join(all, " ")
}

func done(b *feeds.Batch) []feeds.Mark {
	return []feeds.Mark{{Shard: b.Shard, Batch: b, Done: len(b.Messages)}}
}

func without(shards []int, shard int) []int {
	return slices.DeleteFunc(slices.Clone(shards), func(s int) bool { return s == shard })
}
