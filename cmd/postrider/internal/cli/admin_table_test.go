package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestAdminOfTable decides about messages of the classic engine, as an operator does.
func TestAdminOfTable(t *testing.T) {
	c := newTable(t, tabletest.MariaDB(t))
	t.Setenv("POSTRIDER_ACTOR", "ann@work")
	t.Setenv("POSTRIDER_CONFIG", "") // what it hides would not be known
	c.must("migrate", "up")
	c.expect(exitFailure, "status", "there is no feed")
	c.must("feeds", "add", "orders", "--oldest")
	ids := c.deadLetters("orders", 3)

	c.expect(exitFailure, "status", "3 dead letters", "2 keys are blocked")
	c.expect(exitOK, "top --once --interval 100ms", "orders")
	c.expect(exitOK, "feeds ls", "orders", "no relay")
	c.expect(exitOK, "keys blocked", "order/0", "order/1", "unknown customer")
	c.expect(exitOK, "dead ls --error customer --json", ids[0], ids[2], `"attempts":3`)
	c.expect(exitOK, "dead show "+ids[0], "unknown customer", `"n": 0`)
	c.expect(exitOK, "messages ls --feed orders", ids[0], "dead", "waiting")
	c.expect(exitOK, "messages show "+ids[0], "unknown customer")
	c.expect(exitOK, "feeds pause orders --reason maintenance")
	c.expect(exitFailure, "status", "it is paused")
	c.expect(exitOK, "feeds resume orders")
	c.expect(exitFailure, "feeds add billing --oldest", "the feed orders serves table", "use that feed, or remove it first")

	c.expect(exitUsage, "dead discard "+ids[0], "add --yes")
	c.expect(exitOK, "dead discard "+ids[0]+" --yes --reason obsolete", "discard: 1 message")
	fixed := filepath.Join(t.TempDir(), "fixed.json")
	if err := os.WriteFile(fixed, []byte(`{"n":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.expect(exitOK, "dead edit "+ids[1]+" --payload "+fixed+" --yes --reason typo", "payload")
	c.expect(exitOK, "dead replay --all --dry-run", "would send 1 message again")
	c.expect(exitOK, "dead replay --all --rate 10 --yes", "sent 1 message again")
	c.expect(exitUsage, "replay --all --feed orders --yes", "this needs the log")
	c.expect(exitOK, "audit ls", "ann@work", "discard", "obsolete", "edit", "typo", "feed pause", "maintenance")

	out := c.relay(`"n":99`, "--to", "stdout:", "--feed", "orders", "--canary", "0")
	if strings.Contains(out, ids[0]) {
		t.Errorf("what was discarded was sent:\n%s", out)
	}
	c.expect(exitOK, "feeds rewind orders --message "+ids[0]+" --yes")
}

// expect runs a command line, and looks for texts in what it says.
func (c *tableCLI) expect(code int, line string, says ...string) {
	c.t.Helper()
	r := c.run(strings.Fields(line)...)
	if r.code != code {
		c.t.Errorf("%s: exit code %d, want %d\n%s%s", line, r.code, code, r.out, r.err)
	}
	for _, text := range says {
		if !strings.Contains(r.out+r.err, text) {
			c.t.Errorf("%s: does not say %q\n%s%s", line, text, r.out, r.err)
		}
	}
}

// deadDeadLetters defers as many messages of keys order/0, order/1 and so on, and one that waits behind each of the first two; the last
// blocks nothing. It returns the IDs of those that are dead.
func (c *tableCLI) deadLetters(feed string, n int) (ids []string) {
	c.t.Helper()
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	cfg := table.Config{Dialect: c.Dialect}
	opened, err := table.Open(c.DB, cfg)
	must(err)
	outbox, err := opened.Outbox()
	must(err)
	ctx := c.t.Context()
	tx, err := c.DB.BeginTx(ctx, nil)
	must(err)
	for i := range n {
		key := fmt.Sprint(i)
		msgs := []postrider.Message{postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: key}, json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)))}
		ids = append(ids, msgs[0].ID.String())
		if i < 2 {
			msgs = append(msgs, postrider.Event("order.paid", postrider.Aggregate{Type: "order", ID: key}, json.RawMessage(`{}`)))
		}
		must(outbox.Enqueue(ctx, tx, msgs...))
	}
	must(tx.Commit())
	f, err := opened.Feeds().Open(ctx, feed, feeds.Member{Name: "test", Lease: time.Minute})
	must(err)
	defer func() { must(f.Close(context.WithoutCancel(ctx))) }()
	share, err := f.Balance(ctx)
	must(err)
	var want []feeds.Demand
	var marks []feeds.Mark
	for _, s := range share.Shards {
		want = append(want, feeds.Demand{Shard: s, Limit: 100})
	}
	batches, err := f.Read(ctx, want)
	must(err)
	var deferrals []feeds.Deferral
	held := make(map[int]bool)
	for _, b := range batches {
		for i, m := range b.Messages {
			d := feeds.Deferral{Batch: &b, Index: i, Status: feeds.StatusWaiting, Blocking: m.AggregateID != fmt.Sprint(n-1)}
			if m.Type == "order.placed" {
				d.Status, d.Attempts, d.Cause = feeds.StatusDead, 3, "refused: unknown customer"
			}
			deferrals = append(deferrals, d)
		}
		marks, held[b.Shard] = append(marks, feeds.Mark{Shard: b.Shard, Batch: &b, Done: len(b.Messages)}), true
	}
	must(f.Defer(ctx, deferrals))
	for _, s := range share.Shards {
		if !held[s] {
			marks = append(marks, feeds.Mark{Shard: s})
		}
	}
	must(f.Release(ctx, marks))
	return ids
}
