package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Complete implements [idempotency.Store].
func (s *keyStore) Complete(ctx context.Context, tx *sql.Tx, c idempotency.Claim, a idempotency.Answer) error {
	answer, err := a.MarshalBinary()
	if err != nil {
		return err
	}
	k, err := s.find(ctx, tx, byHash(c.ID))
	if err == nil && k == nil { // or tx does not see it yet
		k, err = s.find(ctx, s.db, byHash(c.ID))
	}
	if err == nil && k != nil {
		k, err = s.find(ctx, tx, byNumber(k.n, " FOR UPDATE"))
	}
	if err != nil {
		return fmt.Errorf("mysql: complete a key: %w", sqltext.Explained(err))
	}
	if k == nil {
		return idempotency.ErrLost
	}
	st := s.cfg.stmt("UPDATE {idempotency} SET answer = ").Arg(answer)
	switch _, known, _ := k.state(c); {
	case k.token == c.Token && k.answer != nil:
		if !bytes.Equal(k.answer, answer) {
			return idempotency.ErrLost
		}
		return nil
	case k.token == c.Token:
	case c.Lease > 0 || known:
		return idempotency.ErrLost
	default:
		st.SQL(", fingerprint = ").Word(string(c.Fingerprint[:])).SQL(", token = ").Word(c.Token).SQL(", leased = {now}, expires = ").
			Later("{now}", c.Retention)
	}
	if _, err := st.SQL(" WHERE n = ").Number(k.n).Exec(ctx, tx); err != nil {
		return fmt.Errorf("mysql: complete a key: %w", err)
	}
	return nil
}

// Save implements [idempotency.Store].
func (s *keyStore) Save(ctx context.Context, c idempotency.Claim, a idempotency.Answer) error {
	return sqltext.Transact(ctx, s.db, func(tx *sql.Tx) error { return s.Complete(ctx, tx, c, a) })
}

// Release implements [idempotency.Store]. A key that an open transaction is about to complete is left to its lease.
func (s *keyStore) Release(ctx context.Context, c idempotency.Claim) error {
	err := sqltext.Transact(ctx, s.db, func(tx *sql.Tx) error {
		k, err := s.find(ctx, tx, byHash(c.ID))
		if err != nil || k == nil || k.token != c.Token {
			return err
		}
		k, err = s.find(ctx, tx, byNumber(k.n, " FOR UPDATE SKIP LOCKED"))
		if err != nil || k == nil || k.token != c.Token || k.answer != nil {
			return err
		}
		_, err = s.cfg.stmt("DELETE FROM {idempotency} WHERE n = ").Number(k.n).Exec(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("mysql: release a key: %w", sqltext.Explained(err))
	}
	return nil
}

const purgeKeys = 500

// Purge implements [idempotency.Store]. Each step is a transaction of its own that removes a few hundred keys, and passes over those
// that are locked.
func (s *keyStore) Purge(ctx context.Context) (removed int, err error) {
	var at purgePlace
	for more := true; more; {
		var old []int64
		var next purgePlace
		if old, next, err = s.expired(ctx, at); err != nil {
			break
		}
		more = len(old) == purgeKeys
		n := 0
		err = sqltext.Transact(ctx, s.db, func(tx *sql.Tx) (err error) {
			n, err = s.purge(ctx, tx, old)
			return err
		})
		if err != nil {
			break
		}
		removed += n
		at = next
	}
	if err != nil {
		err = fmt.Errorf("mysql: purge keys: %w", sqltext.Explained(err))
	}
	return removed, err
}

// purgePlace is how far a purge has come.
type purgePlace struct {
	expires time.Time
	n       int64
}

// expired returns some keys behind a place that are older than their retention, and the place of the last.
func (s *keyStore) expired(ctx context.Context, at purgePlace) (old []int64, next purgePlace, err error) {
	st := s.cfg.stmt("SELECT n, ", sqltext.MySQL.Micros("expires"), " FROM {idempotency} WHERE expires <= {now}")
	if !at.expires.IsZero() {
		st.SQL(" AND expires >= ").Time(at.expires).SQL(" AND (expires > ").Time(at.expires).SQL(" OR n > ").Number(at.n).SQL(")")
	}
	err = st.SQL(" ORDER BY expires, n LIMIT ").Number(purgeKeys).Each(ctx, s.db, func(scan func(...any) error) error {
		var expires sql.NullInt64
		err := scan(&next.n, &expires)
		old, next.expires = append(old, next.n), sqltext.Moment(expires)
		return err
	})
	return old, next, err
}

// purge removes keys, except those that are locked or in use again, and returns how many were claimed once.
func (s *keyStore) purge(ctx context.Context, tx *sql.Tx, old []int64) (removed int, err error) {
	if len(old) == 0 {
		return 0, nil
	}
	var free []int64
	err = s.cfg.stmt("SELECT k.n, k.token <> '' FROM ", numbered(old), " {idempotency} k ON k.n = o.n WHERE k.expires <= {now} FOR UPDATE SKIP LOCKED").
		Each(ctx, tx, func(scan func(...any) error) error {
			var n int64
			var claimed bool
			err := scan(&n, &claimed)
			free = append(free, n)
			if claimed {
				removed++
			}
			return err
		})
	if err == nil && len(free) > 0 {
		err = s.cfg.deleteNumbered(ctx, tx, "{idempotency}", "n", free)
	}
	return removed, err
}
