package mysql

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// keyStore keeps the keys of HTTP requests and the answers to them, in the database that the handlers write to: MySQL or
// MariaDB. It is safe for concurrent use.
//
// ClaimIn adds a new key outside of the caller's transaction, so that others can see it: it needs a second connection for a moment.
// A pool that is limited must have more connections than there are transactions at the same time. These are READ COMMITTED, as a
// [Transactor] begins them: at REPEATABLE READ, a caller that finds a key busy keeps others from adding keys until its transaction ends.
type keyStore struct {
	db  *sql.DB
	cfg Config
}

var _ idempotency.Store[*sql.Tx] = (*keyStore)(nil)

// keptKey is a row.
type keptKey struct {
	n           int64
	fingerprint []byte
	token       string
	leased      bool // nobody else is given the key
	expired     bool
	answer      []byte // nil: not done
}

// find reads the row of a key; nil if there is none. How it is locked, and by what it is found, comes last.
func (s *keyStore) find(ctx context.Context, q sqltext.Querier, where func(*sqltext.Stmt) *sqltext.Stmt) (*keptKey, error) {
	var k keptKey
	var token []byte
	st := where(s.cfg.stmt("SELECT n, fingerprint, token, leased > {now}, expires <= {now}, answer FROM {idempotency} WHERE "))
	err := st.Row(ctx, q).Scan(&k.n, &k.fingerprint, &token, &k.leased, &k.expired, &k.answer)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	k.token = string(token)
	return &k, err
}

// byHash finds a key without waiting for anybody.
func byHash(id idempotency.ID) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(st *sqltext.Stmt) *sqltext.Stmt { return st.SQL("hash = ").Word(idHash(id)) }
}

// byNumber finds a row and locks it.
func byNumber(n int64, lock string) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(st *sqltext.Stmt) *sqltext.Stmt { return st.SQL("n = ").Number(n).SQL(lock) }
}

// idHash stands for the four parts of an ID.
func idHash(id idempotency.ID) string {
	h := sha256.New()
	for _, part := range []string{id.Tenant, id.Principal, id.Route, id.Key} {
		_ = binary.Write(h, binary.BigEndian, uint32(len(part))) // a hash never fails
		h.Write([]byte(part))
	}
	return string(h.Sum(nil))
}

// state returns what is known about a claim; it is not known if the key is to be had.
func (k *keptKey) state(c idempotency.Claim) (outcome idempotency.Outcome, known bool, err error) {
	switch {
	case k == nil || k.token == "" || k.expired:
		return outcome, false, nil
	case !bytes.Equal(k.fingerprint, c.Fingerprint[:]):
		outcome.State = idempotency.Mismatch
	case k.answer != nil:
		outcome.State = idempotency.Done
		err = outcome.Answer.UnmarshalBinary(k.answer)
	case k.token == c.Token:
		outcome.State = idempotency.Claimed
	case k.leased:
		outcome.State = idempotency.Busy
	default:
		return outcome, false, nil
	}
	return outcome, true, err
}

// Claim implements [idempotency.Store].
func (s *keyStore) Claim(ctx context.Context, c idempotency.Claim) (outcome idempotency.Outcome, err error) {
	if c.Lease <= 0 {
		return outcome, fmt.Errorf("mysql: a lease of %v would never be held", c.Lease)
	}
	k, err := s.find(ctx, s.db, byHash(c.ID))
	if err == nil && k == nil {
		if err = s.add(ctx, c, c.Token, c.Lease, c.Retention); err == nil {
			return idempotency.Outcome{State: idempotency.Claimed}, nil
		}
		if sqltext.IsDuplicate(err) {
			k, err = s.find(ctx, s.db, byHash(c.ID))
		}
	}
	if err != nil {
		return outcome, fmt.Errorf("mysql: claim a key: %w", sqltext.Explained(err))
	}
	outcome, known, err := k.state(c)
	if known || err != nil {
		return outcome, err
	}
	outcome.State = idempotency.Busy
	if k == nil {
		return outcome, nil // it was there, and is gone: somebody is at it
	}
	err = sqltext.Transact(ctx, s.db, func(tx *sql.Tx) error {
		outcome = idempotency.Outcome{State: idempotency.Busy}
		now, err := s.find(ctx, tx, byNumber(k.n, " FOR UPDATE SKIP LOCKED"))
		if err != nil || now == nil {
			return err
		}
		found, known, err := now.state(c)
		if known || err != nil {
			outcome = found
			return err
		}
		outcome.State = idempotency.Claimed
		return s.take(ctx, tx, now, c)
	})
	if err != nil {
		return idempotency.Outcome{}, fmt.Errorf("mysql: claim a key: %w", err)
	}
	return outcome, nil
}

// add makes a key known, in a transaction of its own. It does not wait for those who have locked it: see the table. Several that add
// the same key may be in each other's way.
func (s *keyStore) add(ctx context.Context, c idempotency.Claim, token string, lease, retention time.Duration) error {
	st := s.cfg.stmt("INSERT INTO {idempotency} (hash, tenant, principal, route, request_key, fingerprint, token, leased, expires) VALUES (").
		Word(idHash(c.ID)).SQL(",").Word(c.Tenant).SQL(",").Word(c.Principal).SQL(",").Word(c.Route).SQL(",").Word(c.Key).SQL(",").
		Word(string(c.Fingerprint[:])).SQL(",").Word(token).SQL(",").Later("{now}", lease).SQL(",").Later("{now}", retention).SQL(")")
	for n := 1; ; n++ {
		_, err := st.Exec(ctx, s.db)
		if !yielded(err) || n >= sqltext.Attempts || !retrying.Pause(ctx, shortly, n) {
			return err
		}
	}
}

// take gives a row that is locked to a claim with a lease.
func (s *keyStore) take(ctx context.Context, tx *sql.Tx, k *keptKey, c idempotency.Claim) error {
	st := s.cfg.stmt("UPDATE {idempotency} SET answer = NULL, fingerprint = ").Word(string(c.Fingerprint[:])).SQL(", token = ").Word(c.Token).
		SQL(", leased = ").Later("{now}", c.Lease)
	if k.expired || k.token == "" {
		st.SQL(", expires = ").Later("{now}", c.Retention)
	}
	_, err := st.SQL(" WHERE n = ").Number(k.n).Exec(ctx, tx)
	return err
}

// placeholder is for how long a row is kept that is there for nothing but to be locked.
const placeholder = time.Minute

// ClaimIn implements [idempotency.Store]. The claim is the lock of a row; nothing is written in tx before Complete.
func (s *keyStore) ClaimIn(ctx context.Context, tx *sql.Tx, c idempotency.Claim) (outcome idempotency.Outcome, err error) {
	c.Lease = 0
	k, err := s.find(ctx, tx, byHash(c.ID))
	if err == nil && k == nil { // or tx does not see it yet
		if err = s.add(ctx, c, "", 0, placeholder); err == nil || sqltext.IsDuplicate(err) {
			k, err = s.find(ctx, s.db, byHash(c.ID))
		}
	}
	if err != nil {
		return outcome, fmt.Errorf("mysql: claim a key: %w", sqltext.Explained(err))
	}
	outcome, known, err := k.state(c)
	if known || err != nil {
		return outcome, err
	}
	busy := idempotency.Outcome{State: idempotency.Busy}
	if k == nil {
		return busy, nil
	}
	if k, err = s.find(ctx, tx, byNumber(k.n, " FOR UPDATE SKIP LOCKED")); err != nil {
		return outcome, fmt.Errorf("mysql: claim a key: %w", err)
	}
	if k == nil {
		return busy, nil
	}
	if outcome, known, err = k.state(c); !known {
		outcome.State = idempotency.Claimed
	}
	return outcome, err
}
