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

// WindowError means that a store forgets received messages sooner than the consumer expects their
// last redelivery.
type WindowError struct {
	Consumer           string
	Window, Redelivery time.Duration
}

func (e *WindowError) Error() string {
	return fmt.Sprintf("inbox: consumer %q expects redeliveries for %s (Redelivery), but its store remembers messages for only %s (InboxWindow of the layout): "+
		"a message could take effect twice; shorten Redelivery, or migrate with a longer window", e.Consumer, e.Redelivery, e.Window)
}

// deferFailed defers a message whose handler failed on its first attempt.
func (in *Inbox[Tx]) deferFailed(ctx context.Context, m postrider.Message, cause error) error {
	s := in.decide(feeds.Deferred{Message: m}, cause)
	if err := in.store.Defer(ctx, in.name, m, s); err != nil {
		return err
	}
	signal(in.wake)
	return nil
}

// decide returns what to do with a message whose handler failed. d is its deferral so far.
func (in *Inbox[Tx]) decide(d feeds.Deferred, cause error) Deferral {
	if errors.Is(cause, errBusy) { // at the concurrency limit: the handler was not called
		return Deferral{Status: feeds.StatusRetry, Blocking: in.cfg.Order == Strict, Attempts: d.Attempts, Delay: busyDelay, Cause: d.LastError}
	}
	f := retry.Failure{Err: cause, Attempts: d.Attempts}
	if !d.TriedAt.IsZero() {
		// Both times are from the store's clock, which may differ from this process's clock.
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
	log.Warn("inbox: handler failed, will retry", "pause", next.Pause, "counted", next.Attempts > d.Attempts)
	return s
}
