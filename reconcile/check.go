package reconcile

import (
	"context"
	"time"

	"github.com/postrider/postrider"
)

// Check finds messages that were sent and did not arrive, and sends them again with [Round.Mend].
type Check func(ctx context.Context, r *Round) error

// Round is the work of one call of a [Check].
type Round struct {
	Since, Until time.Time // range of enqueue times to check
	Batch        int       // number of messages to send again in one transaction
	// Timeout is the time limit of one query to a destination.
	Timeout time.Duration

	mend func(context.Context, []postrider.Message, func(context.Context, []postrider.Message) error) error
}

// Mend counts the messages as found, and calls resend with those that may be sent again now; the
// job's Again limits how often that happens for a message. In a dry run it does not call resend.
func (r *Round) Mend(ctx context.Context, found []postrider.Message, resend func(context.Context, []postrider.Message) error) error {
	return r.mend(ctx, found, resend)
}

// mend writes counts even if there is nothing to resend, because that renews the claim.
func (s *jobRun[Tx]) mend(ctx context.Context, found []postrider.Message, resend func(context.Context, []postrider.Message) error) error {
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
