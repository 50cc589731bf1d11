package inbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// WindowError means that a store forgets received messages before their last possible redelivery.
type WindowError struct {
	Consumer           string
	Window, Redelivery time.Duration
}

func (e *WindowError) Error() string {
	return fmt.Sprintf("inbox: consumer %q expects repetitions for %s (Redelivery), but its store remembers for %s only (InboxWindow of the layout): "+
		"a message could take effect twice; shorten the first, or migrate with a longer window", e.Consumer, e.Redelivery, e.Window)
}

// setAside has the store keep a message whose handler has failed for the first time.
func (in *Inbox[Tx]) setAside(ctx context.Context, m postrider.Message, cause error) error {
	s := in.judge(feeds.Deferred{Message: m}, cause)
	if err := in.store.Defer(ctx, in.name, m, s); err != nil {
		return err
	}
	signal(in.wake)
	return nil
}

// judge says what is to become of a message whose handler has failed; d is how it was deferred until now.
func (in *Inbox[Tx]) judge(d feeds.Deferred, cause error) Deferral {
	if errors.Is(cause, errBusy) { // nothing has failed
		return Deferral{Status: feeds.StatusRetry, Blocking: in.cfg.Order == Strict, Attempts: d.Attempts, Delay: busy, Cause: d.LastError}
	}
	f := retry.Failure{Err: cause, Attempts: d.Attempts}
	if !d.TriedAt.IsZero() {
		// Times of the store alone: its clock and ours may differ.
		f.Age, f.Waited = d.AvailableAt.Sub(d.DeferredAt), 2*d.AvailableAt.Sub(d.TriedAt)
	}
	next := in.routeOf(d.Type).retry.Decide(f, rand.Float64())
	s := Deferral{
		Status: feeds.StatusRetry, Blocking: in.cfg.Order == Strict, Attempts: next.Attempts, Delay: next.Pause, Cause: cause.Error(),
	}
	log := in.cfg.Logger.With("consumer", in.name, "", d.Message, "attempt", next.Attempts,
		"latency", time.Since(d.OccurredAt).Round(time.Millisecond), "err", cause)
	if next.GiveUp {
		s.Status = feeds.StatusDead
		in.stats.dead.Add(1)
		log.Error("inbox: dead letter", "next", "postrider dead show --consumer "+in.name+" "+d.ID.String())
		return s
	}
	in.stats.failed.Add(1)
	log.Warn("inbox: handler failed, trying again", "pause", next.Pause, "counted", next.Attempts > d.Attempts)
	return s
}
