package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// handleAttempts is how often a transaction is begun that the server gives up for the sake of others.
const handleAttempts = 5

// Handle implements [inbox.Store].
func (s *inboxStore[Tx]) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[Tx]) ([]inbox.Verdict, error) {
	// In one global order, so that two batches cannot wait for each other.
	sorted := make([]place, len(msgs))
	for i := range msgs {
		sorted[i] = place{&msgs[i], i}
	}
	slices.SortStableFunc(sorted, func(a, b place) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	// The same message again is a repetition, whatever becomes of the first.
	sorted = slices.CompactFunc(sorted, func(a, b place) bool { return a.ID == b.ID })
	for n := 1; ; n++ {
		outcomes, err := s.handle(ctx, consumer, sorted, late, work)
		if err == nil {
			verdicts := slices.Repeat([]inbox.Verdict{inbox.Repeated}, len(msgs))
			for i, p := range sorted {
				verdicts[p.index] = verdictOf[outcomes[i]]
			}
			return verdicts, nil
		}
		if n < handleAttempts && ctx.Err() == nil && (errors.Is(err, errFreed) || yielded(err)) {
			continue
		}
		return nil, err
	}
}

// place is a message that is handled together with others.
type place struct {
	*postrider.Message
	index int // among those that the caller has handed over
}

// verdictOf is what the letters of the claim mean when all is done.
var verdictOf = map[byte]inbox.Verdict{'f': inbox.Handled, 'r': inbox.Repeated, 'w': inbox.Waiting, 'l': inbox.Late, 'a': inbox.Late}

// errFreed means that a message was about to wait for one that is gone meanwhile.
var errFreed = errors.New("postgres: the key is free again")

func (s *inboxStore[Tx]) handle(ctx context.Context, consumer string, msgs []place, late bool, work inbox.Work[Tx]) ([]byte, error) {
	c, err := s.termsOf(ctx, consumer)
	if err != nil {
		return nil, err
	}
	t, outcomes, err := s.beginClaimed(ctx, c, msgs, late)
	if err != nil {
		return nil, fmt.Errorf("postgres: claim: %w", explain(err))
	}
	defer func() { _ = t.rollback(context.WithoutCancel(ctx)) }()
	var fresh []int
	for i := range msgs {
		if outcomes[i] == 'f' {
			fresh = append(fresh, msgs[i].index)
		}
	}
	slices.Sort(fresh)
	inside, end := postrider.ForTransaction(ctx)
	defer end(false)
	if len(fresh) > 0 {
		if err := work(inside, t.tx, fresh); err != nil {
			return nil, &inbox.FailedError{Err: err}
		}
	}
	// The lock on what is deferred comes last, as in Retry: work may take locks of its own.
	for i := range msgs {
		if outcomes[i] != 'f' && outcomes[i] != 'r' {
			if err := s.shelve(ctx, t, c, *msgs[i].Message, outcomes[i]); err != nil {
				return nil, err
			}
		}
	}
	if err := t.commit(ctx); err != nil {
		return nil, refused(ctx, err)
	}
	end(true)
	return outcomes, nil
}

// shelve defers a message that is not to be handled now.
func (s *inboxStore[Tx]) shelve(ctx context.Context, in statements, c terms, m postrider.Message, letter byte) error {
	back := inbox.Deferral{Status: feeds.StatusWaiting, Blocking: true}
	if letter != 'w' {
		// Most likely it was handled long ago. So it does not hold up its key.
		back = inbox.Deferral{Status: feeds.StatusDead, Cause: inbox.ErrLate.Error()}
	}
	done, err := s.setAside(ctx, in, c, m, back)
	if err == nil && !done {
		err = errFreed
	}
	return err
}

// Defer implements [inbox.Store].
func (s *inboxStore[Tx]) Defer(ctx context.Context, consumer string, m postrider.Message, back inbox.Deferral) error {
	c, err := s.termsOf(ctx, consumer)
	if err != nil {
		return err
	}
	t, err := s.db.begin(ctx)
	if err != nil {
		return fmt.Errorf("postgres: deferred: %w", explain(err))
	}
	defer func() { _ = t.rollback(context.WithoutCancel(ctx)) }()
	if _, err := s.setAside(ctx, t, c, m, back); err != nil {
		return err
	}
	if err := t.commit(ctx); err != nil {
		return fmt.Errorf("postgres: deferred: %w", explain(err))
	}
	return nil
}

func (s *inboxStore[Tx]) setAside(ctx context.Context, in statements, c terms, m postrider.Message, back inbox.Deferral) (done bool, err error) {
	message, err := received(m)
	if err != nil {
		return false, err
	}
	err = in.row(ctx, s.cfg.in("SELECT @schema@.set_aside($1, $2, $3::text::json, $4, $5, $6, $7, $8, $9)"),
		[]any{c.number, c.feed, message, append([]byte{}, m.Payload...), string(back.Status), back.Blocking, int64(back.Attempts),
			back.Delay.Seconds(), clean(back.Cause)}, &done)
	if err != nil {
		return false, fmt.Errorf("postgres: deferred: %w", explain(err))
	}
	return done, nil
}

// refused says whose fault a failed commit is: if the server has answered, that of what was to be committed. At the end of ctx
// database/sql rolls back by itself, and that is nobody's fault.
func refused(ctx context.Context, err error) error {
	if answered(err) && !yielded(err) && ctx.Err() == nil {
		return &inbox.FailedError{Err: err}
	}
	return fmt.Errorf("postgres: commit: %w", explain(err))
}
