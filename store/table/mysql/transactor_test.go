package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/mysql"
	"github.com/postrider/postrider/store/table/tabletest"
	"github.com/postrider/postrider/store/transactor"
	"github.com/postrider/postrider/store/transactor/transactortest"
)

func newMariaDB(t testing.TB) *sql.DB {
	t.Helper()
	s := tabletest.MariaDB(t)
	tabletest.Migrate(t, s, table.Config{})
	return s.DB
}

// must turns a value and an error into a function that ends the test without the value.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func mustExec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func count(t testing.TB, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// letterbox is the outbox as the suite of transactors needs it: any number of readers see all that was committed.
type letterbox struct {
	postrider.Outbox[*sql.Tx]
	feeds.Feed
	db   *sql.DB
	read bool
}

func (l letterbox) Enqueue(ctx context.Context, tx *sql.Tx, msgs ...postrider.Message) error {
	for _, m := range msgs {
		_, err := tx.ExecContext(ctx, "INSERT INTO postrider_outbox (type, aggregate_type, aggregate_id, payload) VALUES (?, ?, ?, '')",
			m.Type, m.AggregateType, m.AggregateID)
		if err != nil {
			return err
		}
	}
	return nil
}

func (l letterbox) Open(context.Context, string, feeds.Member) (feeds.Feed, error) {
	return &letterbox{db: l.db}, nil
}

func (l *letterbox) Balance(context.Context) (feeds.Share, error) {
	return feeds.Share{Shards: []int{0}}, nil
}

func (l *letterbox) Close(context.Context) error { return nil }

func (l *letterbox) Read(ctx context.Context, _ []feeds.Demand) ([]feeds.Batch, error) {
	if l.read {
		return nil, nil
	}
	l.read = true
	rows, err := l.db.QueryContext(ctx, "SELECT type, aggregate_type FROM postrider_outbox ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var b feeds.Batch
	for rows.Next() {
		var m postrider.Message
		if err := rows.Scan(&m.Type, &m.AggregateType); err != nil {
			return nil, err
		}
		b.Messages = append(b.Messages, m)
	}
	return []feeds.Batch{b}, rows.Err()
}

func TestTransactor(t *testing.T) {
	for name, cfg := range map[string]transactor.Config{
		"Default":        {},
		"LeaveUncertain": {LeaveUncertain: true},
		"RepeatableRead": {Isolation: sql.LevelRepeatableRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newMariaDB(t)
			cfg.Retry = retry.Policy{First: time.Millisecond, Most: 5 * time.Millisecond}
			box := letterbox{db: db}
			t.Run("suite", func(t *testing.T) {
				transactortest.Run(t, transactortest.Harness[*sql.Tx]{
					Transactor: newTransactor(t, db, cfg), Outbox: box, Store: box,
					Conflict: &driver.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock"},
				})
			})
			if n := count(t, db, "SELECT count(*) FROM postrider_commits"); n > 40 {
				t.Errorf("%d marks are left of transactions that were never more than 40 at once", n)
			}
		})
	}
}

func newTransactor(t testing.TB, db *sql.DB, cfg transactor.Config) postrider.Transactor[*sql.Tx] {
	t.Helper()
	c := mysql.Config{}
	c.Transactor = cfg
	return must(mysql.Open(db, c))(t).Transactor()
}

// newAccounts is a database with two accounts, and a transactor.
func newAccounts(t *testing.T) (*sql.DB, postrider.Transactor[*sql.Tx]) {
	db := newMariaDB(t)
	mustExec(t, db, "CREATE TABLE accounts (id int PRIMARY KEY, balance int) ENGINE = InnoDB", "INSERT INTO accounts VALUES (1, 0), (2, 0)")
	return db, newTransactor(t, db, transactor.Config{})
}

// add returns a function that changes both accounts, one after the other, and meets the other one between.
func add(first, second int, meet func(), swallow bool) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		for i, id := range []int{first, second} {
			if i == 1 {
				meet()
			}
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance + 1 WHERE id = ?", id)
			if err != nil && !swallow {
				return err
			}
		}
		return nil
	}
}

// Of two transactions that wait for each other the server gives one up. It is run again.
func TestTransactorRepeatsAfterDeadlock(t *testing.T) {
	t.Parallel()
	db, transactor := newAccounts(t)
	var both, run sync.WaitGroup
	both.Add(2)
	for _, ids := range [][2]int{{1, 2}, {2, 1}} {
		var once sync.Once
		meet := func() { once.Do(func() { both.Done(); both.Wait() }) }
		run.Go(func() {
			if err := transactor.Do(t.Context(), add(ids[0], ids[1], meet, false)); err != nil {
				t.Error(err)
			}
		})
	}
	run.Wait()
	if n := count(t, db, "SELECT sum(balance) FROM accounts"); n != 4 {
		t.Errorf("the sum is %d, want 4", n)
	}
}

// A function that keeps a deadlock to itself has lost half of what it did. It is told.
func TestTransactorNoticesAnEarlyEnd(t *testing.T) {
	t.Parallel()
	_, transactor := newAccounts(t)
	var both, run sync.WaitGroup
	both.Add(2)
	var mu sync.Mutex
	var failed []error
	for _, ids := range [][2]int{{1, 2}, {2, 1}} {
		run.Go(func() {
			err := transactor.Do(t.Context(), add(ids[0], ids[1], func() { both.Done(); both.Wait() }, true))
			if err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	run.Wait()
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "ended before its time") || errors.Is(failed[0], postrider.ErrUncertain) {
		t.Errorf("got %v, want one that has noticed", failed)
	}
}

func TestTransactorWithoutTables(t *testing.T) {
	t.Parallel()
	s := tabletest.MariaDB(t) // without any tables
	if err := newTransactor(t, s.DB, transactor.Config{}).Do(t.Context(), func(context.Context, *sql.Tx) error { return nil }); !errors.Is(err, feeds.ErrSchema) {
		t.Errorf("got %v, want ErrSchema", err)
	}
}
