package unitofwork_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/unitofwork"
)

const workers = 8

// TestLostCommitAnswers loses responses to COMMIT in every possible way. What was reported as done
// is done once, with its message, and what was reported as failed has left nothing.
func TestLostCommitAnswers(t *testing.T) {
	t.Run("pgx", func(t *testing.T) { placeByPgx(t, "POSTRIDER_TEST_POSTGRES18", size(), nil) })
	t.Run("pooler", func(t *testing.T) { placeByPgx(t, "POSTRIDER_TEST_PGBOUNCER15", size()/4, nil) })
	t.Run("no schema", func(t *testing.T) {
		placeByPgx(t, "POSTRIDER_TEST_POSTGRES15", size()/4, func(c *postgres.Config) { c.Schema = "not_there" })
	})
	t.Run("sql", func(t *testing.T) {
		s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
		proxied := stdlib.OpenDBFromPool(s.proxied)
		defer proxied.Close()
		cfg := s.cfg
		cfg.Transactor.Retry.Attempts = 2 // some fail permanently
		db, err := postgres.OpenSQL(proxied, cfg)
		if err != nil {
			t.Fatal(err)
		}
		placeOrders(s, unitofwork.New(db.Transactor(), db.Outbox()), size()/2, func(ctx context.Context, tx *sql.Tx, sql, id string) error {
			_, err := tx.ExecContext(ctx, sql, id)
			return err
		})
	})
}

func placeByPgx(t *testing.T, server string, n int, change func(*postgres.Config)) {
	s := newScene(t, pgtest.Env(t, server))
	placeOrders(s, s.work(change), n, insertPgx)
}

func insertPgx(ctx context.Context, tx pgx.Tx, sql, id string) error {
	_, err := tx.Exec(ctx, sql, id)
	return err
}

// badLuck injects a fault into half of all COMMITs.
func badLuck(s *scene) {
	s.proxy.onCommit(func() (fault, time.Duration) {
		if rand.IntN(2) == 0 {
			return none, 0
		}
		while := time.Duration(rand.IntN(8)) * time.Millisecond
		return cutBefore + fault(rand.IntN(int(cutForgotten-cutBefore))), while
	})
	s.proxy.onQuestion(func() bool { return rand.IntN(10) == 0 })
}

func size() int {
	if need.IsLong() {
		return 10_000
	}
	return 400
}

func placeOrders[Tx any](s *scene, work postrider.Transactor[Tx], n int, insert insert[Tx]) {
	badLuck(s)
	statement := s.in("INSERT INTO @.orders VALUES ($1)")
	results := run(n, func(id string) error {
		o := &order{id: id} // outside of the unit: each run finds what the previous one has left
		var hooks atomic.Int64
		err := work.Do(s.t.Context(), func(ctx context.Context, tx Tx) error {
			o.place()
			postrider.AfterCommit(ctx, func() { hooks.Add(1) })
			if err := unitofwork.Track(ctx, o); err != nil {
				return err
			}
			return insert(ctx, tx, statement, id)
		})
		if (err == nil) != (hooks.Load() == 1) || hooks.Load() > 1 {
			s.t.Errorf("order %s: %d calls of AfterCommit, %v", id, hooks.Load(), err)
		}
		return err
	})
	rows, messages := s.rows(), s.messages()
	failed := 0
	for id, err := range results {
		want := 1
		if err != nil {
			failed++
			want = 0
		}
		if errors.Is(err, postrider.ErrUncertain) {
			s.t.Errorf("order %s: %v", id, err)
		}
		if rows[id] != want || messages[id] != want {
			s.t.Errorf("order %s: %d rows and %d messages, want %d; %v", id, rows[id], messages[id], want, err)
		}
	}
	s.t.Logf("%d transactions, %d failed; COMMITs without fault and with each: %v", len(results), failed, s.proxy.counts[:cutForgotten])
	if failed > len(results)/10 {
		s.t.Errorf("%d of %d transactions failed", failed, len(results))
	}
	for f, n := range s.proxy.counts[:cutForgotten] {
		if n == 0 {
			s.t.Errorf("fault %d never happened: nothing is proved", f)
		}
	}
}

// run places orders, several at a time, and returns how each ended.
func run(n int, place func(id string) error) map[string]error {
	var mu sync.Mutex
	var all sync.WaitGroup
	results := make(map[string]error, n)
	var next atomic.Int64
	for range workers {
		all.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				id := fmt.Sprint(i)
				err := place(id)
				mu.Lock()
				results[id] = err
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return results
}

// TestBlindRepetitionDoubles shows that the test detects both wrong strategies: to repeat whenever
// COMMIT returns an error, and to give up.
func TestBlindRepetitionDoubles(t *testing.T) {
	s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	badLuck(s)
	s.proxy.onQuestion(func() bool { return false })
	outbox := s.db.Outbox()
	once := func(id string) error {
		return pgx.BeginFunc(t.Context(), s.proxied, func(tx pgx.Tx) error {
			return errors.Join(insertPgx(t.Context(), tx, s.in("INSERT INTO @.orders VALUES ($1)"), id),
				outbox.Enqueue(t.Context(), tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: id}, nil)))
		})
	}
	run(100, func(id string) (err error) {
		for range 20 {
			if err = once("repeat" + id); err == nil {
				return nil
			}
		}
		return err
	})
	gaveUp := run(100, func(id string) error { return once("once" + id) })
	rows, messages := s.rows(), s.messages()
	doubled, denied := 0, 0
	for id := range gaveUp {
		if rows["repeat"+id] > 1 && messages["repeat"+id] > 1 {
			doubled++
		}
		if gaveUp[id] != nil && rows["once"+id] == 1 {
			denied++
		}
	}
	t.Logf("of 100 orders, repetition has doubled %d; of 100 others, %d are there though they were reported as failed", doubled, denied)
	if doubled == 0 || denied == 0 {
		t.Error("the test cannot see the mistakes that it is there for")
	}
}
