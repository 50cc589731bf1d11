package adopt_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// scene is an application with an outbox table, and the relays' tables beside it.
type scene struct {
	t      *testing.T
	d      described
	server tabletest.Server
	cfg    table.Config
	queue  *queue
}

func newScene(t *testing.T, d described, s tabletest.Server) *scene {
	t.Helper()
	d.create(t, s)
	cfg := table.Config{Dialect: s.Dialect, Layout: d.layout(t)}
	tabletest.Migrate(t, s, cfg)
	sc := &scene{t: t, d: d, server: s, cfg: cfg, queue: newQueue(t)}
	// The business data: numbers are assigned under the lock of the aggregate's row.
	sc.exec("CREATE TABLE orders (id varchar(20) PRIMARY KEY, n int NOT NULL DEFAULT 0)")
	return sc
}

// identity returns the identity of a database.
func identity(t *testing.T, s tabletest.Server) string {
	t.Helper()
	id, err := table.Identity(t.Context(), s.DB, table.Config{Dialect: s.Dialect})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *scene) exec(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.server.DB.ExecContext(s.t.Context(), statement, args...); err != nil {
		s.t.Fatalf("%v\n%s", err, statement)
	}
}

// start runs a relay until the returned function is called or the test ends.
func (s *scene) start(pub postrider.Publisher, cfg relay.Config) (stop func()) {
	s.t.Helper()
	opened, err := table.Open(s.server.DB, s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg.Logger = slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	r, err := relay.New(opened.Feeds(), pub, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("relay: %v", err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

var errRollback = errors.New("rolled back on purpose")

// change runs a business transaction: it changes the aggregate and writes to the outbox. One in six
// is rolled back.
func (s *scene) change(ctx context.Context, aggregate string, kind string) (event, error) {
	tx, err := s.server.DB.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return event{}, err
	}
	defer tx.Rollback()
	e := event{aggregate: aggregate, kind: kind}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET n = n + 1 WHERE id = '"+aggregate+"'"); err != nil {
		return e, err
	}
	if err := tx.QueryRowContext(ctx, "SELECT n FROM orders WHERE id = '"+aggregate+"'").Scan(&e.n); err != nil {
		return e, err
	}
	e.id = postrider.NewID()
	if _, err := tx.ExecContext(ctx, s.d.insert(s.server.Dialect), s.d.row(e)...); err != nil {
		return e, fmt.Errorf("%w: %s", err, s.d.insert(s.server.Dialect))
	}
	if kind != nowhere && rand.IntN(6) == 0 {
		return e, errRollback
	}
	return e, tx.Commit()
}

// produce runs four writers of the application and returns how many messages they have committed.
func (s *scene) produce(aggregates, transactions int) (committed int) {
	s.t.Helper()
	for i := range aggregates {
		s.exec(fmt.Sprintf("INSERT INTO orders (id) VALUES ('o%d')", i))
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range transactions {
				_, err := s.change(s.t.Context(), fmt.Sprintf("o%d", rand.IntN(aggregates)), "order.changed")
				mu.Lock()
				if err == nil {
					committed++
				} else if !errors.Is(err, errRollback) {
					s.t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return committed
}

// count returns the number of outbox rows that match a condition on the table's own columns.
func (s *scene) count(condition string) (n int) {
	s.t.Helper()
	query := "SELECT count(*) FROM " + quote(s.server.Dialect, s.d.table) + " WHERE " + quoted(s.server.Dialect, condition)
	if err := s.server.DB.QueryRowContext(s.t.Context(), query).Scan(&n); err != nil {
		s.t.Fatalf("%v\n%s", err, query)
	}
	return n
}

// until waits for a condition.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	timeout := 20 * time.Second
	if need.IsLong() { // with ten or a hundred times as many messages
		timeout = 3 * time.Minute
	}
	for deadline := time.Now().Add(timeout); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("in %s it did not come true that %s", timeout, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// rowIDs returns the IDs of all rows.
func (s *scene) rowIDs() map[string]bool {
	s.t.Helper()
	rows, err := s.server.DB.QueryContext(s.t.Context(), "SELECT id FROM "+quote(s.server.Dialect, s.d.table))
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	ids := make(map[string]bool)
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			s.t.Fatal(err)
		}
		ids[id] = true
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// inOrder fails if messages of an aggregate arrived out of order. It returns the number of distinct
// messages.
func inOrder(t testing.TB, came []arrival) (different int) {
	t.Helper()
	last := make(map[string]int)
	seen := make(map[string]bool)
	for _, a := range came {
		if seen[a.id] {
			continue
		}
		seen[a.id] = true
		if a.N <= last[a.Of] {
			t.Errorf("of %s, %d came after %d", a.Of, a.N, last[a.Of])
		}
		last[a.Of] = a.N
	}
	return len(seen)
}

func open(t testing.TB, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
