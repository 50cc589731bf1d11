package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
)

// retryDead sends dead letters again with an engine that has no replay jobs. An interrupted run
// does not record its progress.
func (a *app) retryDead(ctx context.Context, d operator, c change, rate int, filters []admin.Filter) error {
	plan := replaying{Sample: []listed{}, Jobs: []replayJob{}}
	counts := make([]int, len(filters))
	for i, filter := range filters {
		n, sample, err := countDeadLetters(ctx, d, filter, sampleSize-len(plan.Sample))
		if err != nil {
			return err
		}
		if n == 0 && !filter.ID.IsZero() {
			return a.notDeferred(filter.ID)
		}
		counts[i], plan.Count, plan.Sample = n, plan.Count+n, append(plan.Sample, sample...)
	}
	if plan.Count == 0 {
		a.notef("no messages match")
	}
	if plan.Count == 0 || c.dryRun {
		return a.reportReplays(plan)
	}
	if !c.yes {
		a.showSample(plan.Count, plan.Sample)
	}
	if err := a.confirm(c.danger, "Send "+phrase.Quantity(plan.Count, "message", "messages")+" again?"); err != nil {
		return err
	}
	plan.Count = 0
	for i, filter := range filters {
		n, err := retryAt(ctx, d, c.by(), rate, filter, counts[i]) // at most as many as the user has confirmed
		if plan.Count += n; err != nil {
			a.notef("done to %s before this:", phrase.Quantity(plan.Count, "message", "messages"))
			return err
		}
	}
	plan.Done = true
	if a.asJSON {
		return a.json(plan)
	}
	_, err := fmt.Fprintf(a.out, "sent %s again\n", phrase.Quantity(plan.Count, "message", "messages"))
	return err
}

// retryAt retries messages at a rate per second; 0 is no limit.
func retryAt(ctx context.Context, d operator, by admin.By, rate int, filter admin.Filter, count int) (sent int, err error) {
	for sent < count {
		most := count - sent
		if rate > 0 {
			most = min(most, rate)
		}
		n, err := d.Act(ctx, by, admin.Retry, filter, most)
		if sent += n; err != nil || n < most || sent == count {
			return sent, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return sent, ctx.Err()
		}
	}
	return sent, nil
}
