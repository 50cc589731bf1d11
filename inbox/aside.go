package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// WindowError means that a store forgets what was received before the last possible repetition of it has come.
type WindowError struct {
	Consumer           string
	Window, Redelivery time.Duration
}

func (e *WindowError) Error() string {
	return fmt.Sprintf("inbox: consumer %q expects repetitions for %s (Redelivery), but its store remembers for %s only (InboxWindow of the layout): "+
		"a message could take effect twice; shorten the first, or migrate with a longer window", e.Consumer, e.Redelivery, e.Window)
}

// setAside has the store keep a message whose handler has failed.
func (in *Inbox[Tx]) setAside(ctx context.Context, m postrider.Message, attempts int, cause error) error {
	s := in.judge(m, attempts, cause)
	if err := in.store.Defer(ctx, in.name, m, s); err != nil {
		return err
	}
	signal(in.wake)
	return nil
}

// judge says what is to become of a message after so many attempts.
func (in *Inbox[Tx]) judge(m postrider.Message, attempts int, cause error) Setback {
	s := Setback{Status: postrider.StatusRetry, Blocking: in.cfg.Order == Strict, Attempts: attempts, Cause: cause.Error()}
	log := in.cfg.Logger.With("consumer", in.name, "", m, "attempt", attempts,
		"latency", time.Since(m.OccurredAt).Round(time.Millisecond), "err", cause)
	if attempts > len(in.cfg.Retries) || postrider.ClassOf(cause) == postrider.ClassPermanent {
		s.Status = postrider.StatusDead
		in.stats.dead.Add(1)
		log.Error("inbox: dead letter", "next", "postrider dead show --consumer "+in.name+" "+m.ID.String())
		return s
	}
	s.Delay = in.cfg.Retries[attempts-1]
	in.stats.failed.Add(1)
	log.Warn("inbox: handler failed, trying again", "pause", s.Delay)
	return s
}
