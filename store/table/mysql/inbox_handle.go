package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/deadletters"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// handleAttempts is how often a transaction is begun that the server gives up for the sake of others.
const handleAttempts = 5

// inboxPlace is a message that is handled together with others.
type inboxPlace struct {
	*postrider.Message
	index int    // among those that the caller has handed over
	hash  string // of its key
}

// Handle implements [inbox.Store].
func (s *inboxStore) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[*sql.Tx]) ([]inbox.Verdict, error) {
	// In one global order, so that two batches cannot wait for each other.
	sorted := make([]inboxPlace, len(msgs))
	for i := range msgs {
		sorted[i] = inboxPlace{&msgs[i], i, deadletters.KeyHash(msgs[i].OrderKey())}
	}
	slices.SortStableFunc(sorted, func(a, b inboxPlace) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	// The same message again is a repetition, whatever becomes of the first.
	sorted = slices.CompactFunc(sorted, func(a, b inboxPlace) bool { return a.ID == b.ID })
	for n := 1; ; n++ {
		outcomes, err := s.handle(ctx, consumer, sorted, late, work)
		if err == nil {
			verdicts := slices.Repeat([]inbox.Verdict{inbox.Repeated}, len(msgs))
			for i, p := range sorted {
				verdicts[p.index] = verdictOf[outcomes[i]]
			}
			return verdicts, nil
		}
		again := errors.Is(err, errFreed) || errors.Is(err, errMoved) || yielded(err)
		if !again || n >= handleAttempts || !retrying.Pause(ctx, shortly, n) {
			return nil, err
		}
	}
}

// verdictOf is what the letters of the claim mean when all is done.
var verdictOf = map[byte]inbox.Verdict{
	outcomeFresh: inbox.Handled, outcomeRepeated: inbox.Repeated, outcomeWaits: inbox.Waiting, outcomeLate: inbox.Late,
}

// errFreed means that a message was about to wait for one that is gone meanwhile.
var errFreed = errors.New("mysql: the key is free again")

func (s *inboxStore) handle(ctx context.Context, consumer string, msgs []inboxPlace, late bool, work inbox.Work[*sql.Tx]) ([]byte, error) {
	c, err := s.termsOf(ctx, consumer)
	if err != nil {
		return nil, err
	}
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("mysql: begin: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	outcomes, now, err := s.claim(ctx, tx, c, msgs, late)
	if err != nil {
		return nil, fmt.Errorf("mysql: claim: %w", sqltext.Explained(err))
	}
	var fresh []int
	for i := range msgs {
		if outcomes[i] == outcomeFresh {
			fresh = append(fresh, msgs[i].index)
		}
	}
	slices.Sort(fresh)
	inside, end := postrider.ForTransaction(ctx)
	defer end(false)
	if len(fresh) > 0 {
		if err := guarded(ctx, tx, func() error { return work(inside, tx, fresh) }); err != nil {
			return nil, err
		}
	}
	// The lock on what is deferred comes last, as in Retry: work may take locks of its own.
	if err := s.shelve(ctx, tx, c, now, msgs, outcomes); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, refused(ctx, err)
	}
	end(true)
	return outcomes, nil
}

// guarded does the work, and makes sure that the transaction has not ended by that. Its error is a [*inbox.FailedError] if that of
// the work.
func guarded(ctx context.Context, tx *sql.Tx, work func() error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT postrider"); err != nil {
		return fmt.Errorf("mysql: savepoint: %w", err)
	}
	if err := work(); err != nil {
		return &inbox.FailedError{Err: err}
	}
	_, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT postrider")
	if isNoSavepoint(err) {
		return &inbox.FailedError{Err: errEnded}
	}
	if err != nil {
		return fmt.Errorf("mysql: savepoint: %w", err)
	}
	return nil
}

// shelve defers what is not to be handled now. All of it is recorded before what is deferred is locked: the holder of that lock
// never waits for a record.
func (s *inboxStore) shelve(ctx context.Context, tx *sql.Tx, c inboxTerms, now time.Time, msgs []inboxPlace, outcomes []byte) error {
	found := false
	for i := range msgs {
		if outcomes[i] != outcomeWaits && outcomes[i] != outcomeLate {
			continue
		}
		err := s.insert(ctx, tx, c, now, []postrider.ID{msgs[i].ID})
		if sqltext.IsDuplicate(err) {
			outcomes[i] = outcomeRepeated
			continue
		}
		if err != nil {
			return fmt.Errorf("mysql: deferred: %w", err)
		}
		found = true
	}
	if !found {
		return nil
	}
	if err := deadletters.Lock(ctx, tx, s.cfg.own(), c.number); err != nil {
		return fmt.Errorf("mysql: deferred: %w", err)
	}
	for i := range msgs {
		back := inbox.Deferral{Status: feeds.StatusWaiting, Blocking: true}
		switch outcomes[i] {
		case outcomeWaits:
		case outcomeLate:
			// Most likely it was handled long ago. So it does not hold up its key.
			back = inbox.Deferral{Status: feeds.StatusDead, Cause: inbox.ErrLate.Error()}
		default:
			continue
		}
		if err := s.deferMessage(ctx, tx, c, msgs[i], back); err != nil {
			return err
		}
	}
	return nil
}

// Defer implements [inbox.Store].
func (s *inboxStore) Defer(ctx context.Context, consumer string, m postrider.Message, back inbox.Deferral) error {
	c, err := s.termsOf(ctx, consumer)
	if err != nil {
		return err
	}
	return sqltext.Transact(ctx, s.db, func(tx *sql.Tx) error {
		now, err := s.cfg.clock(ctx, tx)
		if err != nil {
			return fmt.Errorf("mysql: deferred: %w", err)
		}
		err = s.insert(ctx, tx, c, now, []postrider.ID{m.ID})
		if sqltext.IsDuplicate(err) {
			return nil
		}
		if err == nil {
			err = deadletters.Lock(ctx, tx, s.cfg.own(), c.number)
		}
		if err != nil {
			return fmt.Errorf("mysql: deferred: %w", err)
		}
		return s.deferMessage(ctx, tx, c, inboxPlace{Message: &m, hash: deadletters.KeyHash(m.OrderKey())}, back)
	})
}

// refused says whose fault a failed commit is: if the server has answered, that of what was to be committed. At the end of ctx
// database/sql rolls back by itself, and that is nobody's fault.
func refused(ctx context.Context, err error) error {
	if number, _ := sqltext.Code(err); number != 0 && !yielded(err) && !isLost(err) && ctx.Err() == nil {
		return &inbox.FailedError{Err: err}
	}
	return fmt.Errorf("mysql: commit: %w", err)
}
