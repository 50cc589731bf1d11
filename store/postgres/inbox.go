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

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// inboxStore stores what consumers have received, in the database that their handlers write to. Tx
// is pgx.Tx or *sql.Tx. It is safe for concurrent use.
type inboxStore[Tx any] struct {
	db      database[Tx]
	cfg     Config
	inserts *inserts

	mu    sync.Mutex
	terms map[string]terms // by consumer

	expectRepeats atomic.Int64 // Unix nanoseconds until which repeated messages are expected
}

// terms are how the database records a consumer.
type terms struct {
	number int64
	feed   string
	period int64 // length of a slot in milliseconds of message ID time
}

var (
	_ inbox.Store[pgx.Tx]  = (*inboxStore[pgx.Tx])(nil)
	_ inbox.Store[*sql.Tx] = (*inboxStore[*sql.Tx])(nil)
)

// Open implements [inbox.Store].
func (s *inboxStore[Tx]) Open(ctx context.Context, consumer string) (time.Duration, error) {
	var number int64
	var seconds float64
	err := s.db.row(ctx, s.cfg.in("SELECT number, seconds FROM @schema@.open_inbox($1)"), []any{consumer}, &number, &seconds)
	if err = explain(err); errors.Is(err, feeds.ErrSchema) {
		err = fmt.Errorf("%w; run: postrider migrate up %s", err, s.cfg.CommandFlags)
	}
	if err != nil {
		return 0, fmt.Errorf("postgres: open inbox %q: %w", consumer, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms[consumer] = terms{number, inbox.Feed(consumer), int64(seconds * 1000 / 7)}
	return time.Duration(seconds * float64(time.Second)), nil
}

func (s *inboxStore[Tx]) termsOf(ctx context.Context, consumer string) (terms, error) {
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
func (s *inboxStore[Tx]) Heard(ctx context.Context, consumer, process string) error {
	if _, err := s.db.exec(ctx, s.cfg.in("SELECT @schema@.heard($1, $2)"), consumer, process); err != nil {
		return fmt.Errorf("postgres: heartbeat of consumer %q: %w", consumer, explain(err))
	}
	return nil
}

// strayChunk is how many strays sweep_strays deletes in one transaction.
const strayChunk = 10_000

// Maintain implements [inbox.Store].
func (s *inboxStore[Tx]) Maintain(ctx context.Context) error {
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
