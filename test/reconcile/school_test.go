package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// Possible answers of an enrollment.
const (
	enrolled      = "OK"
	alreadyExists = "ALREADY_EXISTS"
	full          = "RESOURCE_EXHAUSTED"
)

// school is a service with its tables in PostgreSQL. Its outbox is in the same database, or in
// memory.
type school struct {
	postrider.Transactor[pgx.Tx]
	t      *testing.T
	pool   *pgxpool.Pool
	cfg    postgres.Config
	db     *postgres.DB
	outbox postrider.Outbox[pgx.Tx]
	store  feeds.Store
	lose   atomic.Bool // the broker confirms and then loses messages
	lost   atomic.Int64
}

func newSchool(t *testing.T, pool *pgxpool.Pool, cfg postgres.Config) *school {
	t.Helper()
	db, err := postgres.Open(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &school{Transactor: db.Transactor(), t: t, pool: pool, cfg: cfg, db: db}
}

// TestSchool runs the cases with both outboxes.
func TestSchool(t *testing.T) {
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	for _, kind := range []string{"postgres", "memory"} {
		t.Run(kind, func(t *testing.T) {
			cfg := pgtest.Schema(t, pool, postgres.Layout{})
			newSchool(t, pool, cfg).build()
			for _, c := range cases {
				if c.inMemory && kind != "memory" {
					continue // the database's own outbox loses nothing; test/e2e tests its restarts
				}
				t.Run(c.name, func(t *testing.T) {
					s := newSchool(t, pool, cfg)
					s.exec("TRUNCATE @.courses, @.enrollments, @.mails, @.handled, @.reconcilers, @.reconciler_again")
					if kind == "memory" {
						s.restart()
					} else {
						s.outbox, s.store = s.db.Outbox(), s.db.Feeds()
					}
					c.test(t, s)
				})
			}
		})
	}
}

func (s *school) build() {
	s.t.Helper()
	s.exec(`CREATE TABLE @.courses (id text PRIMARY KEY, capacity int NOT NULL, taken int NOT NULL DEFAULT 0)`)
	s.exec(`CREATE TABLE @.enrollments (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, course text NOT NULL, student text NOT NULL,
		at timestamptz NOT NULL DEFAULT clock_timestamp(), UNIQUE (course, student))`)
	s.exec(`CREATE TABLE @.mails (enrollment bigint NOT NULL)`) // nothing here keeps an effect from happening twice
	s.exec(`CREATE TABLE @.handled (key text PRIMARY KEY)`)
}

// restart discards the outbox in memory.
func (s *school) restart() {
	store := memory.Open(memory.Config{})
	s.outbox, s.store = memory.Outbox[pgx.Tx](store), store
}

func (s *school) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *school) in(sql string) string { return strings.ReplaceAll(sql, "@", s.cfg.Schema) }

func (s *school) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), s.in(sql), args...)
	s.check(err)
}

func (s *school) number(sql string) (n int) {
	s.t.Helper()
	s.check(s.pool.QueryRow(s.t.Context(), s.in(sql)).Scan(&n))
	return n
}

var errFull = errors.New("the course is full")

// enroll is the service: one transaction, and one message if a seat was taken.
func (s *school) enroll(ctx context.Context, course, student string) (answer string, err error) {
	answer = enrolled
	err = s.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, s.in(`INSERT INTO @.enrollments (course, student) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`),
			course, student).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			answer = alreadyExists
			return nil
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, s.in(`UPDATE @.courses SET taken = taken + 1 WHERE id = $1 AND taken < capacity`), course)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errFull // and no enrollment
		}
		return s.outbox.Enqueue(ctx, tx, confirmation(id))
	})
	if errors.Is(err, errFull) {
		return full, nil
	}
	return answer, err
}

func confirmation(id int64) postrider.Message {
	m := postrider.Event("enrollment.confirmed", postrider.Aggregate{Type: "enrollment", ID: strconv.FormatInt(id, 10)}, map[string]int64{"id": id})
	m.DedupKey = fmt.Sprintf("enrollment:%d", id)
	return m
}

// handle is the consumer: one mail for each enrollment, however often its message arrives, and with
// whatever ID.
func (s *school) handle(ctx context.Context, m postrider.Message) error {
	if s.lose.Load() {
		s.lost.Add(1)
		return nil
	}
	return s.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.in(`INSERT INTO @.handled VALUES ($1) ON CONFLICT DO NOTHING`), "enrollment:"+m.AggregateID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, s.in(`INSERT INTO @.mails SELECT e.id FROM @.enrollments e WHERE e.id::text = $1`), m.AggregateID)
		return err
	})
}

// carry runs a relay until stop is called.
func (s *school) carry() (stop func()) {
	s.t.Helper()
	r, err := relay.New(s.store, postrider.PublisherFunc(s.handle), relay.Config{Logger: slog.New(slog.DiscardHandler)})
	s.check(err)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	}
}

// find is the reconciler's query: which enrollments have no mail?
func (s *school) find(ctx context.Context, tx pgx.Tx, since, until time.Time, limit int) ([]postrider.Message, error) {
	rows, err := tx.Query(ctx, s.in(`SELECT e.id FROM @.enrollments e WHERE e.at >= $1 AND e.at < $2
		AND NOT EXISTS (SELECT FROM @.mails m WHERE m.enrollment = e.id) LIMIT $3`), since, until, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (postrider.Message, error) {
		var id int64
		err := row.Scan(&id)
		return confirmation(id), err
	})
}

// reconciler runs the job every few milliseconds, in two processes, until stop is called.
func (s *school) reconciler(again reconcile.Again) (fixed func() int64, stop func()) {
	s.t.Helper()
	store := s.db.Reconciliations()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 2)
	for i := range 2 {
		p, err := reconcile.New(store, s, s.outbox, reconcile.Config{Holder: fmt.Sprint("process ", i), Logger: slog.New(slog.DiscardHandler)},
			reconcile.Job[pgx.Tx]{
				Name: "enrollments", Schedule: reconcile.Every(20 * time.Millisecond), Window: time.Hour, Grace: 10 * time.Millisecond,
				Find: s.find, Again: again, Rate: -1,
			})
		s.check(err)
		go func() { done <- p.Run(ctx) }()
	}
	total := func() int64 {
		states, err := store.Jobs(s.t.Context())
		s.check(err)
		if len(states) == 0 {
			return 0
		}
		return states[0].Total.Fixed
	}
	return total, func() {
		cancel()
		s.check(errors.Join(<-done, <-done))
	}
}

// await waits until there is a mail for each enrollment, and checks that there is exactly one.
func (s *school) await(enrollments int) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if s.number("SELECT count(DISTINCT enrollment) FROM @.mails") >= enrollments {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d of %d enrollments have a mail", s.number("SELECT count(DISTINCT enrollment) FROM @.mails"), enrollments)
		}
	}
	if n := s.number("SELECT count(*) FROM @.mails"); n != enrollments {
		s.t.Errorf("%d mails for %d enrollments", n, enrollments)
	}
}
