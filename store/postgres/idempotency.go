package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/idempotency"
)

// keyStore stores the keys of HTTP requests and the answers to them, in the database that the
// handlers write to. Tx is pgx.Tx or *sql.Tx. It is safe for concurrent use.
type keyStore[Tx any] struct {
	db  database[Tx]
	cfg Config

	mu     sync.Mutex
	passes int
	since  float64 // Unix seconds up to which all expired keys were removed
}

var (
	_ idempotency.Store[pgx.Tx]  = (*keyStore[pgx.Tx])(nil)
	_ idempotency.Store[*sql.Tx] = (*keyStore[*sql.Tx])(nil)
)

// Claim implements [idempotency.Store].
func (s *keyStore[Tx]) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if c.Lease <= 0 {
		return idempotency.Outcome{}, fmt.Errorf("postgres: a lease of %v would never be held", c.Lease)
	}
	return s.claim(ctx, s.db, c)
}

// ClaimIn implements [idempotency.Store]. The claim is an advisory lock of the transaction. Nothing
// is written before Complete.
func (s *keyStore[Tx]) ClaimIn(ctx context.Context, tx Tx, c idempotency.Claim) (idempotency.Outcome, error) {
	c.Lease = 0
	return s.claim(ctx, s.db.in(tx), c)
}

func (s *keyStore[Tx]) claim(ctx context.Context, db statements, c idempotency.Claim) (outcome idempotency.Outcome, err error) {
	var state string
	var answer []byte
	err = db.row(ctx, s.cfg.in("SELECT state, answer FROM @schema@.idempotency_claim($1, $2, $3, $4, $5, $6, $7, $8)"),
		arguments(c), &state, &answer)
	if err != nil {
		return outcome, fmt.Errorf("postgres: claim a key: %w", explain(err))
	}
	switch state {
	case "claimed":
		outcome.State = idempotency.Claimed
	case "mismatch":
		outcome.State = idempotency.Mismatch
	case "done":
		outcome.State = idempotency.Done
		if err := outcome.Answer.UnmarshalBinary(answer); err != nil {
			return outcome, fmt.Errorf("postgres: claim a key: %w", err)
		}
	default:
		outcome.State = idempotency.Busy
	}
	return outcome, nil
}

// Complete implements [idempotency.Store].
func (s *keyStore[Tx]) Complete(ctx context.Context, tx Tx, c idempotency.Claim, a idempotency.Answer) error {
	return s.complete(ctx, s.db.in(tx), c, a)
}

// Save implements [idempotency.Store].
func (s *keyStore[Tx]) Save(ctx context.Context, c idempotency.Claim, a idempotency.Answer) error {
	return s.complete(ctx, s.db, c, a)
}

func (s *keyStore[Tx]) complete(ctx context.Context, db statements, c idempotency.Claim, a idempotency.Answer) error {
	answer, err := a.MarshalBinary()
	if err != nil {
		return err
	}
	var held bool
	err = db.row(ctx, s.cfg.in("SELECT @schema@.idempotency_complete($1, $2, $3, $4, $5, $6, $7, $8, $9)"),
		append(arguments(c), answer), &held)
	if err != nil {
		return fmt.Errorf("postgres: complete a key: %w", explain(err))
	}
	if !held {
		return idempotency.ErrLost
	}
	return nil
}

// Release implements [idempotency.Store].
func (s *keyStore[Tx]) Release(ctx context.Context, c idempotency.Claim) error {
	_, err := s.db.exec(ctx, s.cfg.in("SELECT @schema@.idempotency_release($1, $2, $3, $4, $5)"),
		c.Tenant, c.Principal, c.Route, c.Key, c.Token)
	if err != nil {
		return fmt.Errorf("postgres: release a key: %w", explain(err))
	}
	return nil
}

const (
	purgeBatch = 500
	// purgeAfresh is how often a pass starts from the beginning, to remove keys that were locked
	// when earlier passes skipped them. The other passes start where the last one ended.
	purgeAfresh = 60
)

// Purge implements [idempotency.Store]. Each step is a transaction of its own that removes a few
// hundred keys. It skips locked keys and does not wait for the disk.
func (s *keyStore[Tx]) Purge(ctx context.Context) (removed int, err error) {
	s.mu.Lock()
	since := s.since
	if s.passes%purgeAfresh == 0 {
		since = math.Inf(-1)
	}
	s.passes++
	s.mu.Unlock()
	for {
		var n int64
		err := s.db.row(ctx, s.cfg.in("SELECT removed, date_part('epoch', reached) FROM @schema@.idempotency_purge(to_timestamp($1), $2)"),
			[]any{since, int64(purgeBatch)}, &n, &since)
		if err != nil {
			return removed, fmt.Errorf("postgres: purge keys: %w", explain(err))
		}
		removed += int(n)
		if n < purgeBatch {
			s.mu.Lock()
			s.since = since
			s.mu.Unlock()
			return removed, nil
		}
	}
}

func arguments(c idempotency.Claim) []any {
	return []any{c.Tenant, c.Principal, c.Route, c.Key, c.Fingerprint[:], c.Token, c.Lease.Seconds(), c.Retention.Seconds()}
}
