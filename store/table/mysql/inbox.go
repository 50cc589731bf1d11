package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// inboxStore keeps what consumers have received, in the database that their handlers write to: MySQL or MariaDB. It is safe for
// concurrent use.
//
// Its transactions are READ COMMITTED. A handler that keeps a deadlock of its statements to itself, or defines a table, has ended the
// transaction; that is noticed, and counts as a failure.
type inboxStore struct {
	db  *sql.DB
	cfg Config

	mu    sync.Mutex
	terms map[string]inboxTerms // by consumer
}

// inboxTerms are how a consumer is recorded.
type inboxTerms struct {
	number int64
	feed   string
	window time.Duration
	began  time.Time // a window before the consumer was made known
}

var _ inbox.Store[*sql.Tx] = (*inboxStore)(nil)

// Open implements [inbox.Store].
func (s *inboxStore) Open(ctx context.Context, consumer string) (time.Duration, error) {
	c := inboxTerms{feed: inbox.Feed(consumer)}
	look := func() error {
		var micros int64
		var created sql.NullInt64
		err := s.cfg.stmt("SELECT n, window_us, ", sqltext.MySQL.Micros("created_at"), " FROM {consumers} WHERE name = ").Word(consumer).
			Row(ctx, s.db).Scan(&c.number, &micros, &created)
		c.window = time.Duration(micros) * time.Microsecond
		c.began = sqltext.Moment(created).Add(-c.window)
		return err
	}
	err := look()
	if errors.Is(err, sql.ErrNoRows) {
		_, err = s.cfg.stmt("INSERT INTO {consumers} (name, window_us, created_at) VALUES (").Word(consumer).SQL(",").
			Number(s.cfg.InboxWindow.Microseconds()).SQL(",{now})").Exec(ctx, s.db)
		if err == nil || sqltext.IsDuplicate(err) {
			err = look()
		}
	}
	if err != nil {
		return 0, fmt.Errorf("mysql: open inbox %q: %w", consumer, sqltext.Explained(err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms[consumer] = c
	return c.window, nil
}

func (s *inboxStore) termsOf(ctx context.Context, consumer string) (inboxTerms, error) {
	s.mu.Lock()
	c, ok := s.terms[consumer]
	s.mu.Unlock()
	if ok {
		return c, nil
	}
	if _, err := s.Open(ctx, consumer); err != nil {
		return c, err
	}
	return s.termsOf(ctx, consumer)
}

// Heard implements [inbox.Store].
func (s *inboxStore) Heard(ctx context.Context, consumer, process string) error {
	c, err := s.termsOf(ctx, consumer)
	if err != nil {
		return err
	}
	_, err = s.cfg.stmt("INSERT INTO {consumer_heard} (consumer, at, process) VALUES (").Number(c.number).SQL(",{now},").Word(process).
		SQL(") ON DUPLICATE KEY UPDATE at = {now}, process = ").Word(process).Exec(ctx, s.db)
	if err != nil {
		return fmt.Errorf("mysql: heartbeat of consumer %q: %w", consumer, sqltext.Explained(err))
	}
	return nil
}

// margin is for how much longer records are kept than the window lasts: a claim that has looked at the clock has that long to make one.
func (c inboxTerms) margin() time.Duration { return min(time.Minute, c.window/7) }

// inboxSweeps is how many chunks are removed at a time.
const inboxSweeps = 10

// Maintain implements [inbox.Store].
func (s *inboxStore) Maintain(ctx context.Context) error {
	for range inboxSweeps {
		n, err := s.sweep(ctx)
		if err != nil {
			return fmt.Errorf("mysql: sweep inbox: %w", sqltext.Explained(err))
		}
		if n < s.cfg.PurgeChunk {
			break
		}
	}
	if err := s.sweepTurns(ctx); err != nil {
		return fmt.Errorf("mysql: sweep inbox: %w", sqltext.Explained(err))
	}
	return nil
}

// sweep forgets some of what is out of the window. What is deferred is remembered for another one.
func (s *inboxStore) sweep(ctx context.Context) (n int, err error) {
	err = sqltext.Transact(ctx, s.db, func(tx *sql.Tx) error {
		var old []string
		err := s.cfg.stmt("SELECT consumer, hex(id) FROM {inbox}", s.cfg.byIndex("inbox_old"), " WHERE keep_until < {now} ORDER BY keep_until LIMIT ").
			Number(int64(s.cfg.PurgeChunk)).SQL(" FOR UPDATE SKIP LOCKED").
			Each(ctx, tx, func(scan func(...any) error) error {
				var consumer int64
				var id string
				err := scan(&consumer, &id)
				old = append(old, fmt.Sprintf(`{"c":%d,"id":"%s"}`, consumer, id))
				return err
			})
		if n = len(old); err != nil || n == 0 {
			return err
		}
		// Row by row: a scan of the table would wait for those that others are about to add.
		these := "JSON_TABLE('[" + strings.Join(old, ",") + "]', '$[*]' COLUMNS (c int PATH '$.c', id char(32) PATH '$.id')) o " +
			"STRAIGHT_JOIN {inbox} i ON i.consumer = o.c AND i.id = unhex(o.id)"
		_, err = s.cfg.stmt("UPDATE ", these, " STRAIGHT_JOIN {inbox_deferred} a ON a.consumer = i.consumer AND a.message_id = i.id ",
			"STRAIGHT_JOIN {consumers} c ON c.n = i.consumer SET i.keep_until = {now} + INTERVAL c.window_us MICROSECOND").Exec(ctx, tx)
		if err == nil {
			err = s.noteForgotten(ctx, tx, these+" WHERE i.keep_until < {now}")
		}
		if err == nil {
			_, err = s.cfg.stmt("DELETE i FROM ", these, " WHERE i.keep_until < {now}").Exec(ctx, tx)
		}
		return err
	})
	return n, err
}

// noteForgotten has consumers know of which time they forget something.
func (s *inboxStore) noteForgotten(ctx context.Context, tx *sql.Tx, these string) error {
	gone := make(map[int64][]postrider.ID)
	err := s.cfg.stmt("SELECT i.consumer, i.id FROM ", these).Each(ctx, tx, func(scan func(...any) error) error {
		var consumer int64
		var id []byte
		err := scan(&consumer, &id)
		if err == nil {
			gone[consumer] = append(gone[consumer], postrider.ID(id))
		}
		return err
	})
	for _, consumer := range slices.Sorted(maps.Keys(gone)) {
		var f inbox.Forgotten
		if err == nil {
			f, err = s.forgotten(ctx, tx, consumer)
		}
		if err != nil {
			return err
		}
		before := f
		for _, id := range gone[consumer] {
			f.Note(id.Time())
		}
		if f != before {
			_, err = s.cfg.stmt("UPDATE {consumers} SET forgotten_us = ").Number(f.Since.UnixMicro()).SQL(", history_us = ").
				Number(f.History.UnixMicro()).SQL(" WHERE n = ").Number(consumer).Exec(ctx, tx)
		}
	}
	return err
}

// forgotten locks a consumer and returns what it has forgotten.
func (s *inboxStore) forgotten(ctx context.Context, tx *sql.Tx, consumer int64) (inbox.Forgotten, error) {
	var window, since, history int64
	var created sql.NullInt64
	err := s.cfg.stmt("SELECT window_us, ", sqltext.MySQL.Micros("created_at"), ", forgotten_us, history_us FROM {consumers} WHERE n = ").
		Number(consumer).SQL(" FOR UPDATE").Row(ctx, tx).Scan(&window, &created, &since, &history)
	began := sqltext.Moment(created).Add(-time.Duration(window) * time.Microsecond)
	return inbox.Forgotten{Began: began, Since: time.UnixMicro(since), History: time.UnixMicro(history)}, err
}

// sweepTurns removes what messages have left that an operator has discarded.
func (s *inboxStore) sweepTurns(ctx context.Context) error {
	return sqltext.Transact(ctx, s.db, func(tx *sql.Tx) error {
		left, err := s.seqs(ctx, tx, "SELECT t.seq FROM {inbox_turns} t LEFT JOIN {inbox_deferred} a ON a.seq = t.seq WHERE a.seq IS NULL LIMIT 1000")
		if err != nil || len(left) == 0 {
			return err
		}
		free, err := s.seqs(ctx, tx, "SELECT t.seq FROM "+numbered(left)+" {inbox_turns} t ON t.seq = o.n FOR UPDATE SKIP LOCKED")
		if err != nil || len(free) == 0 {
			return err
		}
		return s.cfg.deleteNumbered(ctx, tx, "{inbox_turns}", "seq", free)
	})
}
