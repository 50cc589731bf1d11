package points

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// trip is the data of a saga.
type trip struct {
	Paid int `json:"paid"`
}

// prices is what each step takes from the customer's account, in the order of the steps.
var (
	steps  = []string{"hotel", "flight", "car"}
	prices = map[string]int{"hotel": 10, "flight": 20, "car": 30}
)

const (
	fails  = "fails "  // and the step that fails permanently
	breaks = "breaks " // and the step whose first attempt loses its connection
)

// agency runs sagas.
type agency struct {
	p    part
	pool *pgxpool.Pool
	db   *postgres.DB
	saga *saga.Saga[pgx.Tx, trip]
}

func newAgency(p part, pool *pgxpool.Pool, db *postgres.DB) (_ *agency, err error) {
	a := &agency{p: p, pool: pool, db: db}
	retry := retry.Policy{Attempts: 50, First: time.Millisecond, Most: 20 * time.Millisecond}
	var all []saga.Steps[pgx.Tx, trip]
	for _, name := range steps {
		all = append(all, saga.Step(name, a.pays(name, false), a.pays(name, true)).Retry(retry).RetryUndo(retry))
	}
	a.saga, err = saga.New(db.Sagas(), p.Name, all...) // sagas of other names are not visible
	return a, err
}

func (a *agency) in(sql string) string { return strings.ReplaceAll(sql, "@", a.p.Schema) }

// pays returns a step or its compensation: it books money, inserts a row and enqueues a message. It
// is not idempotent, so a repetition would be visible.
func (a *agency) pays(name string, undo bool) func(ctx context.Context, tx pgx.Tx, data *trip) error {
	amount, what := prices[name], "done"
	if undo {
		amount, what = -amount, "undone"
	}
	return func(ctx context.Context, tx pgx.Tx, data *trip) error {
		id := strings.Split(saga.Key(ctx), "/")[1]
		if _, err := tx.Exec(ctx, a.in("UPDATE @.accounts SET balance = balance - $1 WHERE of = $2 AND id = $3"), amount, a.p.Name, id); err != nil {
			return err
		}
		if a.p.Fails == breaks+name && !undo {
			var n int
			if err := tx.QueryRow(ctx, a.in("SELECT nextval('@.attempt_"+suffix(a.p.Name)+"')")).Scan(&n); err != nil {
				return err
			}
			if n == 1 {
				_ = tx.Conn().PgConn().Conn().Close()
			}
		}
		if _, err := tx.Exec(ctx, a.in("INSERT INTO @.effects VALUES ($1, $2, $3, $4)"), a.p.Name, id, name+" "+what, amount); err != nil {
			return err
		}
		if err := a.db.Outbox().Enqueue(ctx, tx, postrider.Event(name+"."+what, postrider.Aggregate{Type: a.p.Name, ID: id}, amount)); err != nil {
			return err
		}
		data.Paid += amount
		if a.p.Fails == fails+name && !undo {
			return postrider.Permanent(errors.New("no"))
		}
		return nil
	}
}

// start opens an account and starts a saga for it, in one transaction. It may have been called
// before.
func (a *agency) start(ctx context.Context, id string) error {
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if err := a.saga.Start(ctx, tx, id, trip{}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, a.in("INSERT INTO @.accounts VALUES ($1, $2, 100)"), a.p.Name, id)
		return err
	})
	if errors.Is(err, saga.ErrExists) {
		return nil
	}
	return err
}

// runSaga runs a process that starts a saga and runs due steps.
func runSaga(ctx context.Context, p part, gate *tap.Gate) error {
	pool, db, err := p.database(ctx, gate)
	if err != nil {
		return err
	}
	defer pool.Close()
	a, err := newAgency(p, pool, db)
	if err != nil {
		return err
	}
	for range 2 { // the second start has no effect
		for a.start(ctx, "one") != nil && ctx.Err() == nil { // the outcome may be uncertain: the ID makes a repetition safe
			time.Sleep(10 * time.Millisecond)
		}
	}
	r, err := saga.NewRunner(saga.Config{Concurrency: 1, Poll: 20 * time.Millisecond, Logger: p.logger()}, a.saga)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// agencies prepares cases for sagas, all of which share one schema.
func (s *servers) agencies(t *testing.T) func(t *testing.T, name string) *world {
	cfg := pgtest.Schema(t, s.pool, postgres.Layout{})
	yard := s.world(t, "", cfg)
	yard.exec("CREATE TABLE @.accounts (of text, id text, balance int NOT NULL, PRIMARY KEY (of, id))")
	yard.exec("CREATE TABLE @.effects (of text, id text, what text, amount int)")
	yard.exec("CREATE INDEX ON @.effects (of)")
	return func(t *testing.T, name string) *world {
		w := s.world(t, name, cfg)
		w.exec("CREATE SEQUENCE @.attempt_" + suffix(name))
		return w
	}
}

// sagaScenario is a saga from start to end, in which a step may fail or lose its connection.
func sagaScenario(name string, open func(t *testing.T, name string) *world, trouble string, limits map[string]int) *scenario {
	tell := func(w *world) part {
		p := w.part("saga")
		p.Fails = trouble
		p.Limits = limits
		return p
	}
	finished := func(w *world, id string) {
		w.until("saga "+id+" is finished", func() bool {
			return w.number("SELECT count(*) FROM @.sagas WHERE name = $1 AND id = $2 AND finished IS NOT NULL", w.name, id) == 1
		})
	}
	want := saga.Completed
	if strings.HasPrefix(trouble, fails) {
		want = saga.Compensated
	}
	return &scenario{
		name: name,
		open: open,
		part: tell,
		work: func(w *world) {
			finished(w, "one")
			for _, name := range []string{"sweep sagas", "look for strangers", "ask for sagas that are due", "rollback after: take a step"} {
				w.untilSeen(name, 1)
			}
		},
		after: func(w *world) {
			a, err := newAgency(tell(w), w.pool, w.db)
			if err == nil {
				err = a.start(w.ctx, "two")
			}
			if err != nil {
				w.t.Fatal(err)
			}
			finished(w, "two")
		},
		check: func(w *world, _ tap.Way) {
			w.checkSaga("one", want)
			w.checkSaga("two", want)
		},
	}
}

// checkSaga checks that a saga has ended: completely or not at all, nothing twice, no money lost.
func (w *world) checkSaga(id string, want saga.Status) {
	w.t.Helper()
	done, undone, balance := len(steps), 0, 40
	if want == saga.Compensated {
		done, undone, balance = len(steps)-1, len(steps)-1, 100 // the effects of the failing step were rolled back
	}
	type outcome struct {
		Status                                   string
		Done, Undone, Twice, Balance, Paid, Sent int
	}
	var got outcome
	err := w.pool.QueryRow(w.ctx, w.in(`SELECT g.status, (g.data ->> 'paid')::int,
		(SELECT count(*) FROM @.effects e WHERE e.of = g.name AND e.id = g.id AND amount > 0),
		(SELECT count(*) FROM @.effects e WHERE e.of = g.name AND e.id = g.id AND amount < 0),
		(SELECT count(*) FROM (SELECT FROM @.effects e WHERE e.of = g.name AND e.id = g.id GROUP BY what HAVING count(*) > 1) t),
		(SELECT balance FROM @.accounts a WHERE a.of = g.name AND a.id = g.id),
		(SELECT count(*) FROM @.messages m WHERE m.aggregate_type = g.name AND m.aggregate_id = g.id)
		FROM @.sagas g WHERE g.name = $1 AND g.id = $2`), w.name, id).
		Scan(&got.Status, &got.Paid, &got.Done, &got.Undone, &got.Twice, &got.Balance, &got.Sent)
	if err != nil {
		w.t.Fatal(err)
	}
	if wanted := (outcome{string(want), done, undone, 0, balance, 100 - balance, done + undone}); got != wanted {
		w.t.Errorf("saga %s: %+v, want %+v\n%s", id, got, wanted, strings.Join(w.texts(`SELECT concat_ws(' ', step, state, attempts, error)
			FROM @.saga_steps WHERE saga = $1 AND id = $2`, w.name, id), "\n"))
	}
	if n := w.number("SELECT count(*) FROM @.sagas WHERE name = $1", w.name); n != 2 {
		w.t.Errorf("%d sagas, want 2", n)
	}
}
