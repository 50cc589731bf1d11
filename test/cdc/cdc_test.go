// Package cdc_test tests that the log of store/postgres can be read from the WAL instead of by
// relays, as docs/operations/cdc.md describes: with logical decoding, by Debezium or another
// reader.
package cdc_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/proof/history"
)

// publish is the publication from the documentation.
const publish = `CREATE PUBLICATION %s FOR TABLE %s.messages WHERE (type <> 'postrider.canary')
	WITH (publish = 'insert', publish_via_partition_root = true)`

// TestHistory reads from the WAL what 8 writers commit, in transactions of every kind, some of
// which roll back and some of which commit late. The reader is killed now and then and resumes at
// its last confirmed position; slots of the ring are emptied all the time. No message is lost or
// invented, and each key arrives in commit order.
func TestHistory(t *testing.T) {
	const keys, messages = 100, 20_000
	s := newStream(t, start(t), publish, postgres.Layout{Shards: 4, Slots: 3, Period: time.Second})
	if err := history.Setup(t.Context(), s.pool, s.cfg, keys); err != nil {
		t.Fatal(err)
	}
	keepShort(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	writers, err := history.Start(ctx, s.pool, s.cfg, history.Plan{
		Writers: 8, Keys: keys, Messages: messages, Pause: 20 * time.Millisecond, Pauses: 0.1, Bulk: 40})
	if err != nil {
		t.Fatal(err)
	}
	defer writers.Stop()
	written := make(chan uint64, 1)
	go func() {
		writers.Wait()
		written <- s.end(t)
	}()

	var arrived []history.Delivery
	kinds, names := map[string]int{}, map[string]int{}
	until := uint64(1<<63 - 1)
	kills := 0
	for done := false; !done; kills++ {
		r := s.open(t)
		for begin := len(arrived); ; {
			select {
			case until = <-written:
			default:
			}
			part, stop := context.WithTimeout(ctx, time.Second)
			rows, err := r.next(part, until)
			stop()
			if err != nil && part.Err() == nil || ctx.Err() != nil {
				t.Fatal(err, ctx.Err())
			}
			if done = rows == nil && err == nil; done {
				break
			}
			arrived = append(arrived, deliveries(t, rows)...)
			read := len(arrived) - begin
			if read < 3000 {
				if err := r.confirm(); err != nil {
					t.Fatal(err)
				}
			} else if read > 4000 && kills < 4 {
				break
			}
		}
		r.kill()
		for kind, n := range r.kinds {
			kinds[kind] += n
		}
		for name, n := range r.names {
			names[name] += n
		}
	}

	verdict, err := history.Check(ctx, s.pool, s.cfg, arrived)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s; the reader was killed %d times", verdict, kills-1)
	if !verdict.Clean() || writers.Errors() > 0 || verdict.Committed < messages/2 {
		t.Errorf("%d transactions have failed; %s", writers.Errors(), verdict)
	}
	if len(names) != 1 || names["messages"] == 0 || kinds["U"]+kinds["D"]+kinds["T"] > 0 {
		t.Errorf("the stream has rows of %v, and messages of the kinds %v", names, kinds)
	}
	awaitEmpty(t, s)
}

// keepShort runs a relay that sends nowhere, which keeps the log short where no relay delivers.
func keepShort(t *testing.T, s *stream) {
	t.Helper()
	r, err := relay.New(s.db.Feeds(), discard.New(), relay.Config{
		Feed: "cdc", MaintainInterval: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// awaitEmpty waits until every slot of the ring has been emptied: one full rotation.
func awaitEmpty(t *testing.T, s *stream) {
	t.Helper()
	left := -1
	for deadline := time.Now().Add(30 * time.Second); left != 0; time.Sleep(50 * time.Millisecond) {
		if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+s.cfg.Schema+".messages").Scan(&left); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are still in the log", left)
		}
	}
}

func deliveries(t *testing.T, rows []row) (all []history.Delivery) {
	t.Helper()
	for _, r := range rows {
		id, err := postrider.ParseID(r.values["id"])
		payload, hexErr := hex.DecodeString(strings.TrimPrefix(r.values["payload"], `\x`))
		d := history.Delivery{ID: id}
		if _, scanErr := fmt.Sscanf(string(payload), "%s %d", &d.Key, &d.N); err != nil || hexErr != nil || scanErr != nil {
			t.Fatalf("row %v: %v, %v, %v", r.values, err, hexErr, scanErr)
		}
		all = append(all, d)
	}
	return all
}

// TestPublication tests what each option of the publication is for. The slot of the ring is emptied
// before the reader starts: everything committed is in the WAL, including large payloads.
func TestPublication(t *testing.T) {
	dsn := start(t)
	for _, c := range []struct {
		name, publication     string
		root, truncate, alive bool // inserts into the root table, a truncation, a canary
	}{
		{"as documented", publish, true, false, false},
		{"everything", "CREATE PUBLICATION %s FOR TABLE %s.messages WITH (publish_via_partition_root = true)", true, true, true},
		{"by partition", "CREATE PUBLICATION %s FOR TABLE %s.messages WITH (publish = 'insert')", false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(t, dsn, c.publication, postgres.Layout{})
			large := make([]byte, 1<<20)
			_, _ = rand.Read(large)
			sent := []postrider.Message{
				postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, large), postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "43"}, nil)}
			if err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error { return s.db.Outbox().Enqueue(t.Context(), tx, sent...) }); err != nil {
				t.Fatal(err)
			}
			s.exec(t, "SELECT "+s.cfg.Schema+".enqueue('"+feeds.CanaryType+"', payload => '{}')")
			s.exec(t, "TRUNCATE "+s.cfg.Schema+".messages")

			r := s.open(t)
			var rows []row
			for until := s.end(t); ; {
				more, err := r.next(t.Context(), until)
				if err != nil {
					t.Fatal(err)
				}
				if more == nil {
					break
				}
				rows = append(rows, more...)
			}
			want := len(sent)
			if c.alive {
				want++
			}
			if len(rows) != want {
				t.Fatalf("got %d rows, want %d", len(rows), want)
			}
			if root := r.names["messages"] == len(rows); root != c.root || (r.kinds["T"] > 0) != c.truncate {
				t.Errorf("got rows of %v and messages of the kinds %v", r.names, r.kinds)
			}
			if payload, err := hex.DecodeString(rows[0].values["payload"][2:]); err != nil || !bytes.Equal(payload, large) {
				t.Errorf("the large payload has %d bytes, %v", len(payload), err)
			}
			if id := rows[1].values["id"]; id != sent[1].ID.String() || rows[1].values["aggregate_id"] != "43" {
				t.Errorf("got %v", rows[1].values)
			}
		})
	}
}
