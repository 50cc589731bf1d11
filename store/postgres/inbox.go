package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// Inbox keeps what consumers have received, in the database that their handlers write to. Tx is pgx.Tx or *sql.Tx. It is safe for
// concurrent use.
type Inbox[Tx any] struct {
	db      database[Tx]
	cfg     Config
	inserts *inserts

	mu    sync.Mutex
	terms map[string]terms // by consumer

	careful atomic.Int64 // until when repetitions are expected, in nanoseconds
}

// terms are how a consumer is recorded.
type terms struct {
	number int64
	feed   string
	period int64 // milliseconds of IDs that lie in one slot
}

var (
	_ inbox.Store[pgx.Tx]  = (*Inbox[pgx.Tx])(nil)
	_ inbox.Store[*sql.Tx] = (*Inbox[*sql.Tx])(nil)
)

// NewInbox returns an inbox store for handlers that use pgx.
func NewInbox(pool *pgxpool.Pool, cfg Config) (*Inbox[pgx.Tx], error) {
	if pool == nil {
		return nil, errors.New("postgres: pool is nil")
	}
	return newInbox(overPgx(pool), cfg)
}

// NewSQLInbox returns an inbox store for handlers that use database/sql.
func NewSQLInbox(db *sql.DB, cfg Config) (*Inbox[*sql.Tx], error) {
	if db == nil {
		return nil, errors.New("postgres: db is nil")
	}
	return newInbox(overSQL(db), cfg)
}

func newInbox[Tx any](db database[Tx], cfg Config) (*Inbox[Tx], error) {
	cfg, err := cfg.withDefaults()
	return &Inbox[Tx]{db: db, cfg: cfg, inserts: newInserts(cfg), terms: make(map[string]terms)}, err
}

// Open implements [inbox.Store].
func (s *Inbox[Tx]) Open(ctx context.Context, consumer string) (time.Duration, error) {
	var number int64
	var seconds float64
	err := s.db.row(ctx, s.cfg.in("SELECT number, seconds FROM @schema@.open_inbox($1)"), []any{consumer}, &number, &seconds)
	if err = explain(err); errors.Is(err, postrider.ErrSchema) {
		err = fmt.Errorf("%w; run: postrider migrate up --schema %s", err, s.cfg.Schema)
	}
	if err != nil {
		return 0, fmt.Errorf("postgres: open inbox %q: %w", consumer, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms[consumer] = terms{number, inbox.Feed(consumer), int64(seconds * 1000 / 7)}
	return time.Duration(seconds * float64(time.Second)), nil
}

func (s *Inbox[Tx]) termsOf(ctx context.Context, consumer string) (terms, error) {
	s.mu.Lock()
	t, ok := s.terms[consumer]
	s.mu.Unlock()
	if ok {
		return t, nil
	}
	if _, err := s.Open(ctx, consumer); err != nil {
		return t, err
	}
	return s.termsOf(ctx, consumer)
}

// Heard implements [inbox.Store].
func (s *Inbox[Tx]) Heard(ctx context.Context, consumer, process string) error {
	if _, err := s.db.exec(ctx, s.cfg.in("SELECT @schema@.heard($1, $2)"), consumer, process); err != nil {
		return fmt.Errorf("postgres: heartbeat of consumer %q: %w", consumer, explain(err))
	}
	return nil
}

// strayChunk is how many strays are forgotten in one transaction.
const strayChunk = 10_000

// Maintain implements [inbox.Store].
func (s *Inbox[Tx]) Maintain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	for removed := int64(strayChunk); removed == strayChunk; {
		if err := s.db.row(ctx, s.cfg.in("SELECT @schema@.sweep_strays()"), nil, &removed); err != nil {
			return fmt.Errorf("postgres: sweep inbox: %w", explain(err))
		}
	}
	if _, err := s.db.exec(ctx, s.cfg.in("SELECT @schema@.sweep_inbox()")); err != nil {
		return fmt.Errorf("postgres: sweep inbox: %w", explain(err))
	}
	return nil
}
