package reconcile

import (
	"context"
	"time"

	"github.com/postrider/postrider"
)

// Check looks for messages that were sent and have not arrived, and has them sent again with [Round.Mend].
type Check func(ctx context.Context, r *Round) error

// Round is what a [Check] is asked to look at.
type Round struct {
	Since, Until time.Time // of being enqueued
	Batch        int       // how many messages to send again together
	// Timeout is how long one question to a destination may take.
	Timeout time.Duration

	mend func(context.Context, []postrider.Message, func(context.Context, []postrider.Message) error) error
}

// Mend counts the messages as found, and calls resend with those of them that may be sent again now: each a limited number
// of times, as the job's Again says. In a dry run it calls nothing.
func (r *Round) Mend(ctx context.Context, found []postrider.Message, resend func(context.Context, []postrider.Message) error) error {
	return r.mend(ctx, found, resend)
}

// mend counts also when there is nothing to repair: that keeps the claim.
func (s *sortie[Tx]) mend(ctx context.Context, found []postrider.Message, resend func(context.Context, []postrider.Message) error) error {
	if left := s.limit - int(s.sent()); len(found) > left {
		found = found[:max(left, 0)]
	}
	return s.transaction(ctx, func(ctx context.Context, tx Tx) (Counts, []postrider.Message, error) {
		n := Counts{Found: int64(len(found))}
		if s.dryRun || len(found) == 0 {
			return n, found, nil
		}
		keys := make([]string, len(found))
		for i := range found {
			keys[i] = found[i].ID.String()
		}
		numbers, err := s.store.Again(ctx, tx, s.claim, keys, s.job.Again)
		if err != nil {
			return n, nil, err
		}
		var again []postrider.Message
		for i, m := range found {
			if numbers[i] > 0 {
				again = append(again, m)
			}
		}
		n.Fixed = int64(len(again))
		if len(again) == 0 {
			return n, nil, nil
		}
		return n, again, resend(ctx, again)
	})
}
