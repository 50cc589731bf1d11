package e2e_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

// TestHistory combines all faults: every way of writing, with pauses at the worst moments, and
// relays that are killed, suspended past their lease and restarted at random. Everything committed
// arrives and nothing else does, the first arrivals of each key are in commit order, and every
// duplicate is explained by a kill or a suspension.
func TestHistory(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.Newest(t, testHistory)
}

func TestHistoryThroughPooler(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	t.Parallel()
	pgtest.EachPooled(t, testHistory)
}

func testHistory(t *testing.T, dsn string) {
	s := newScene(t, dsn, postgres.Layout{Shards: 8})
	messages := int64(25_000) // of which a quarter is rolled back
	if need.IsLong() {
		messages = 1_350_000
	}
	const lease = 2 * time.Second
	relays := s.relays(fleet.Config{Lease: lease, Batch: 37, Ahead: 300, Slow: 4 * time.Millisecond}, 3)

	open := s.openTransaction()
	start := time.Now()
	writers := s.write(history.Plan{
		Writers: 64, Keys: 200, Messages: messages, Pause: 300 * time.Millisecond, Pauses: 0.25, Bulk: 40,
	})
	done := make(chan struct{})
	faults := make(chan int)
	go func() { faults <- relays.Trouble(lease, done) }()
	writers.Wait()
	if n := writers.Errors(); n > 0 {
		t.Errorf("%d transactions failed", n)
	}
	open()
	wrote := time.Since(start)
	close(done)
	n := <-faults
	verdict := s.settle(time.Minute)
	relays.StopAll()
	t.Logf("%d faults, written in %s, all arrived after %s", n, wrote.Round(time.Second), time.Since(start).Round(time.Second))
	s.mustBeClean(verdict, relays)
}

// TestHistoryOfFew is the same with so few writers that often no transaction ends between two
// reads. Only then does a snapshot omit transactions that are in flight; with many writers, errors
// in handling this stay hidden.
func TestHistoryOfFew(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn, postgres.Layout{Shards: 2})
		messages := int64(200)
		if need.IsLong() {
			messages = 20_000
		}
		relays := s.relays(fleet.Config{Lease: 10 * time.Second, Batch: 3, Ahead: 30}, 1)
		s.write(history.Plan{Writers: 3, Keys: 20, Messages: messages, Pause: 100 * time.Millisecond, Pauses: 0.5, Bulk: 4}).Wait()
		verdict := s.settle(20 * time.Second)
		relays.StopAll()
		s.mustBeClean(verdict, relays)
	})
}

// openTransaction enqueues a message in a transaction that stays open until the returned function
// commits it.
func (s *scene) openTransaction() (commit func()) {
	s.t.Helper()
	tx, err := s.pool.Begin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	m := postrider.Message{ID: postrider.NewID(), Type: "fact", Key: "open", Payload: []byte("open 1")}
	if err := s.db.Outbox().Enqueue(s.t.Context(), tx, m); err != nil {
		s.t.Fatal(err)
	}
	_, err = tx.Exec(s.t.Context(), "INSERT INTO "+s.cfg.Schema+".facts VALUES ($1, 'open', 1)", pgx.QueryExecModeExec, m.ID.String())
	if err != nil {
		s.t.Fatal(err)
	}
	return func() {
		if err := tx.Commit(s.t.Context()); err != nil {
			s.t.Error(err)
		}
	}
}
