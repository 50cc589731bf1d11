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

// handleAttempts is how often Handle begins a transaction that the server aborts in favour of
// others.
const handleAttempts = 5

// Handle implements [inbox.Store].
func (s *inboxStore[Tx]) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[Tx]) ([]inbox.Verdict, error) {
	// All callers use the same order, so two batches cannot deadlock.
	sorted := make([]place, len(msgs))
	for i := range msgs {
		sorted[i] = place{&msgs[i], i}
	}
	slices.SortStableFunc(sorted, func(a, b place) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	// A second copy in the batch is a repetition, whatever happens to the first.
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

// place is a message of a batch.
type place struct {
	*postrider.Message
	index int // in the caller's batch
}

// verdictOf translates the outcomes of a claim for the caller, once the transaction has committed.
var verdictOf = map[byte]inbox.Verdict{'f': inbox.Handled, 'r': inbox.Repeated, 'w': inbox.Waiting, 'l': inbox.Late, 'a': inbox.Late}

// errFreed means that the message for which another was about to wait is gone.
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
	// Take the lock on deferred messages last, as Retry does: work may take locks of its own.
	for i := range msgs {
		if outcomes[i] != 'f' && outcomes[i] != 'r' {
			if err := s.deferUnhandled(ctx, t, c, *msgs[i].Message, outcomes[i]); err != nil {
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

// deferUnhandled defers a message that must not be handled now.
func (s *inboxStore[Tx]) deferUnhandled(ctx context.Context, in statements, c terms, m postrider.Message, outcome byte) error {
	back := inbox.Deferral{Status: feeds.StatusWaiting, Blocking: true}
	if outcome != 'w' {
		// The consumer most likely handled it long ago, so it does not block its key.
		back = inbox.Deferral{Status: feeds.StatusDead, Cause: inbox.ErrLate.Error()}
	}
	done, err := s.deferIn(ctx, in, c, m, back)
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
	if _, err := s.deferIn(ctx, t, c, m, back); err != nil {
		return err
	}
	if err := t.commit(ctx); err != nil {
		return fmt.Errorf("postgres: deferred: %w", explain(err))
	}
	return nil
}

func (s *inboxStore[Tx]) deferIn(ctx context.Context, in statements, c terms, m postrider.Message, back inbox.Deferral) (done bool, err error) {
	message, err := received(m)
	if err != nil {
		return false, err
	}
	err = in.row(ctx, s.cfg.in("SELECT @schema@.inbox_defer($1, $2, $3::text::json, $4, $5, $6, $7, $8, $9)"),
		[]any{c.number, c.feed, message, append([]byte{}, m.Payload...), string(back.Status), back.Blocking, int64(back.Attempts),
			back.Delay.Seconds(), clean(back.Cause)}, &done)
	if err != nil {
		return false, fmt.Errorf("postgres: deferred: %w", explain(err))
	}
	return done, nil
}

// refused classifies a failed commit. If the server answered, what was to be committed is at fault,
// and refused returns an [inbox.FailedError]. When ctx ends, database/sql rolls back by itself;
// that says nothing about the message.
func refused(ctx context.Context, err error) error {
	if answered(err) && !yielded(err) && ctx.Err() == nil {
		return &inbox.FailedError{Err: err}
	}
	return fmt.Errorf("postgres: commit: %w", explain(err))
}
