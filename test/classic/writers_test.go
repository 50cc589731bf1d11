package classic_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
	"github.com/postrider/postrider/test/proof/history"
)

const keys = 200

// producers write in transactions that pause before and after the insert, roll back fully or to a
// savepoint, and enqueue one at a time, together or by plain SQL. Each message inserts a row into
// facts in the same transaction: facts is the truth. The messages of a key are numbered without
// gaps under the key's row lock.
type producers struct {
	server tabletest.Server
	outbox postrider.Outbox[*sql.Tx]
	pause  time.Duration

	enqueued, failed atomic.Int64
	running          sync.WaitGroup
}

// produce runs writers until about the given number of messages is enqueued, some of which are
// rolled back.
func produce(t *testing.T, s tabletest.Server, writers int, messages int64, pause time.Duration) *producers {
	t.Helper()
	setup := []string{
		"CREATE TABLE facts (id varchar(36) NOT NULL, k varchar(20) NOT NULL, n bigint NOT NULL)",
		"CREATE TABLE keys_ (k varchar(20) NOT NULL PRIMARY KEY, n bigint NOT NULL)",
	}
	for i := range keys {
		setup = append(setup, fmt.Sprintf("INSERT INTO keys_ VALUES ('k%d', 0)", i))
	}
	for _, statement := range setup {
		if _, err := s.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	db, err := table.Open(s.DB, table.Config{Dialect: s.Dialect})
	if err != nil {
		t.Fatal(err)
	}
	outbox, err := db.Outbox()
	if err != nil {
		t.Fatal(err)
	}
	p := &producers{server: s, outbox: outbox, pause: pause}
	for range writers {
		p.running.Go(func() {
			for p.enqueued.Load() < messages && t.Context().Err() == nil {
				if err := p.transaction(t.Context()); err != nil && !errors.Is(err, errRollback) {
					p.failed.Add(1)
					t.Log(err)
				}
			}
		})
	}
	return p
}

var errRollback = errors.New("rolled back on purpose")

func (p *producers) transaction(ctx context.Context) error {
	tx, err := p.server.DB.BeginTx(ctx, nil) // at the server's default isolation level, as applications do
	if err != nil {
		return err
	}
	defer tx.Rollback()
	p.wait(ctx)
	if rand.IntN(4) == 0 { // a savepoint that is rolled back
		if _, err := tx.ExecContext(ctx, "SAVEPOINT s"); err != nil {
			return err
		}
		if err := p.insert(ctx, tx); err != nil {
			return err
		}
		p.wait(ctx)
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT s"); err != nil {
			return err
		}
	}
	if err := p.insert(ctx, tx); err != nil {
		return err
	}
	p.wait(ctx)
	if rand.IntN(10) == 0 {
		return errRollback
	}
	return tx.Commit()
}

// insert assigns the next numbers of some keys, in one order for all writers to avoid deadlocks,
// and writes their messages and facts.
func (p *producers) insert(ctx context.Context, tx *sql.Tx) error {
	chosen := make([]int, 1+rand.IntN(3))
	for i := range chosen {
		chosen[i] = rand.IntN(keys)
	}
	slices.Sort(chosen)
	var facts []history.Fact
	for _, key := range slices.Compact(chosen) {
		count := 1 + rand.IntN(12)
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE keys_ SET n = n + %d WHERE k = 'k%d'", count, key)); err != nil {
			return err
		}
		var n int64
		if err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT n FROM keys_ WHERE k = 'k%d'", key)).Scan(&n); err != nil {
			return err
		}
		for i := range count {
			facts = append(facts, history.Fact{ID: postrider.NewID(), Key: fmt.Sprint("k", key), N: n - int64(count) + 1 + int64(i)})
		}
	}
	p.wait(ctx)
	p.enqueued.Add(int64(len(facts)))
	var rows, values []string
	var msgs []postrider.Message
	for _, f := range facts {
		rows = append(rows, fmt.Sprintf("('%s', '%s', %d)", f.ID, f.Key, f.N))
		values = append(values, fmt.Sprintf("('%s', 'fact', '%s', '%s %d')", f.ID, f.Key, f.Key, f.N))
		msgs = append(msgs, f.Message())
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO facts VALUES "+strings.Join(rows, ", ")); err != nil {
		return err
	}
	switch rand.IntN(3) {
	case 0:
		return p.outbox.Enqueue(ctx, tx, msgs...)
	case 1:
		_, err := tx.ExecContext(ctx, "INSERT INTO postrider_outbox (message_id, type, order_key, payload) VALUES "+strings.Join(values, ", "))
		return err
	}
	for _, m := range msgs {
		if err := p.outbox.Enqueue(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}

func (p *producers) wait(ctx context.Context) {
	if rand.IntN(4) > 0 {
		return
	}
	timer := time.NewTimer(rand.N(p.pause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// committed returns the rows of facts.
func (p *producers) committed(t *testing.T) []history.Fact {
	t.Helper()
	rows, err := p.server.DB.QueryContext(t.Context(), "SELECT id, k, n FROM facts")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []history.Fact
	for rows.Next() {
		var f history.Fact
		var id string
		if err := rows.Scan(&id, &f.Key, &f.N); err != nil {
			t.Fatal(err)
		}
		if f.ID, err = postrider.ParseID(id); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
