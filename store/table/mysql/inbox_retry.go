package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/deadletters"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Retry implements [inbox.Store]. An attempt that the server gives up for the sake of others does not count.
func (s *inboxStore) Retry(ctx context.Context, consumer string, work func(context.Context, *sql.Tx, feeds.Deferred) error, judge func(feeds.Deferred, error) inbox.Deferral) (inbox.Attempt, error) {
	c, err := s.termsOf(ctx, consumer)
	if err != nil {
		return inbox.Attempt{Next: -1}, err
	}
	for n := 1; ; n++ {
		a, err := s.retry(ctx, c, work, func(d feeds.Deferred, failed error) (inbox.Deferral, error) {
			if yielded(failed) && n < handleAttempts {
				return inbox.Deferral{}, failed
			}
			return judge(d, failed), nil
		})
		if !yielded(err) || n >= handleAttempts || !retrying.Pause(ctx, shortly, n) {
			return a, err
		}
	}
}

func (s *inboxStore) retry(ctx context.Context, c inboxTerms, work func(context.Context, *sql.Tx, feeds.Deferred) error, judge func(feeds.Deferred, error) (inbox.Deferral, error)) (inbox.Attempt, error) {
	none := inbox.Attempt{Next: -1}
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return none, fmt.Errorf("mysql: retry: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	d, next, err := s.takeDue(ctx, tx, c)
	if err != nil {
		return none, fmt.Errorf("mysql: retry: %w", sqltext.Explained(err))
	}
	if d == nil {
		return inbox.Attempt{Next: next}, nil
	}
	inside, end := postrider.ForTransaction(ctx)
	defer end(false)
	err = guarded(ctx, tx, func() error { return work(inside, tx, *d) })
	if err == nil {
		err = s.finish(ctx, tx, c, d)
	}
	var failed *inbox.FailedError
	if !errors.As(err, &failed) {
		end(err == nil)
		if errors.Is(err, errDecided) {
			err = nil
		}
		return inbox.Attempt{Found: true}, err
	}
	end(false)
	back, err := judge(*d, failed.Err)
	if err == nil {
		err = s.fail(ctx, tx, c, d, back)
	}
	return inbox.Attempt{Found: true, Failed: failed.Err}, err
}

// takeDue locks the turn of one message that is due. Nobody is kept from deciding about the message itself. If nothing is due, it
// returns how long it takes until something is; what is due but locked is somebody else's.
func (s *inboxStore) takeDue(ctx context.Context, tx *sql.Tx, c inboxTerms) (*feeds.Deferred, time.Duration, error) {
	var now sql.NullInt64
	var due []int64
	err := s.cfg.stmt("SELECT ", sqltext.MySQL.Micros("{now}"), ", x.seq FROM (SELECT 1) one LEFT JOIN (SELECT seq, available_at FROM {inbox_deferred} WHERE consumer = ").
		Number(c.number).SQL(" AND available_at <= {now} ORDER BY available_at, seq LIMIT 100) x ON TRUE ORDER BY x.available_at, x.seq").
		Each(ctx, tx, func(scan func(...any) error) error {
			var seq sql.NullInt64
			err := scan(&now, &seq)
			if seq.Valid {
				due = append(due, seq.Int64)
			}
			return err
		})
	if err != nil {
		return nil, 0, err
	}
	for _, seq := range due {
		err := s.cfg.stmt("SELECT seq FROM {inbox_turns} WHERE seq = ").Number(seq).SQL(" FOR UPDATE SKIP LOCKED").Row(ctx, tx).Scan(&seq)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		d, err := deadletters.Scan(s.cfg.stmt("SELECT ", deadletters.Fields(true), " FROM {inbox_deferred} a JOIN {consumers} c ON c.n = a.consumer WHERE a.seq = ").
			Number(seq).SQL(" AND a.available_at <= {now}").Row(ctx, tx).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		return &d, 0, err
	}
	var wait sql.NullInt64
	err = s.cfg.stmt("SELECT TIMESTAMPDIFF(MICROSECOND, {now}, min(available_at)) FROM {inbox_deferred} WHERE consumer = ").Number(c.number).
		SQL(" AND available_at > ").Time(sqltext.Moment(now)).Row(ctx, tx).Scan(&wait)
	if err != nil || !wait.Valid {
		return nil, -1, err
	}
	return nil, min(max(time.Duration(wait.Int64)*time.Microsecond, 10*time.Millisecond), 24*time.Hour), nil
}

var errDecided = errors.New("mysql: an operator has decided about the message")

// finish commits what was done for a message.
func (s *inboxStore) finish(ctx context.Context, tx *sql.Tx, c inboxTerms, d *feeds.Deferred) error {
	err := s.conclude(ctx, tx, c, d, nil)
	if err == nil {
		if err = tx.Commit(); err != nil {
			return refused(ctx, err)
		}
	}
	return err
}

// fail undoes what was done for a message and records that it has failed: in the same transaction, so that nobody takes the
// message meanwhile, or in another one if that is lost, as after a deadlock.
func (s *inboxStore) fail(ctx context.Context, tx *sql.Tx, c inboxTerms, d *feeds.Deferred, back inbox.Deferral) error {
	_, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT postrider")
	if err == nil {
		if err = s.conclude(ctx, tx, c, d, &back); err == nil {
			err = tx.Commit()
		}
	} else {
		_ = tx.Rollback()
		err = sqltext.Transact(ctx, s.db, func(tx *sql.Tx) error { return s.conclude(ctx, tx, c, d, &back) })
	}
	if errors.Is(err, errDecided) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mysql: retry: %w", err)
	}
	return nil
}

// conclude ends an attempt when the transaction commits: the message is gone or, with a deferral, has failed again. It returns
// errDecided if an operator was faster: the message is no longer due since the moment at which it was taken.
func (s *inboxStore) conclude(ctx context.Context, tx *sql.Tx, c inboxTerms, d *feeds.Deferred, back *inbox.Deferral) error {
	if err := deadletters.Lock(ctx, tx, s.cfg.own(), c.number); err != nil {
		return fmt.Errorf("mysql: retry: %w", err)
	}
	var hash []byte
	var blocking bool
	err := s.cfg.stmt("SELECT key_hash, blocking FROM {inbox_deferred} WHERE seq = ").Number(d.Seq).SQL(" AND available_at = ").Time(d.AvailableAt).
		Row(ctx, tx).Scan(&hash, &blocking)
	if errors.Is(err, sql.ErrNoRows) {
		return errDecided
	}
	if err == nil && back != nil {
		st := s.cfg.stmt("UPDATE {inbox_deferred} SET status = ").Text(string(back.Status)).SQL(", attempts = ").Number(int64(back.Attempts)).
			SQL(", last_error = ").Text(causeOf(back.Cause)).SQL(", tried_at = {now}, available_at = ")
		if back.Status == feeds.StatusRetry {
			st.Later("{now}", back.Delay)
		} else {
			st.SQL("NULL")
		}
		_, err = st.SQL(" WHERE seq = ").Number(d.Seq).Exec(ctx, tx)
	}
	if err == nil && back == nil {
		_, err = s.cfg.stmt("DELETE FROM {inbox_deferred} WHERE seq = ").Number(d.Seq).Exec(ctx, tx)
		if err == nil {
			_, err = s.cfg.stmt("DELETE FROM {inbox_turns} WHERE seq = ").Number(d.Seq).Exec(ctx, tx)
		}
		if err == nil && blocking {
			err = deadletters.Promote(ctx, tx, s.cfg.own(), c.number, string(hash))
		}
	}
	if err != nil {
		return fmt.Errorf("mysql: retry: %w", err)
	}
	return nil
}
