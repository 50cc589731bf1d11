package intake

import (
	"context"
	"log/slog"
	"time"
)

const (
	pauseMin = 100 * time.Millisecond
	pauseMax = 5 * time.Second
)

// Persist keeps a consumer running through outages. It calls attempt repeatedly until ctx ends,
// with a backoff that grows until an attempt succeeds. An attempt connects, calls working once
// messages can arrive, and returns when they no longer can. Persist logs once when an outage begins
// and once when it ends, under the subscription's name in what.
func Persist(ctx context.Context, log *slog.Logger, what string, attempt func(ctx context.Context, working func()) error) {
	pause, down := pauseMin, false
	for ctx.Err() == nil {
		err := attempt(ctx, func() {
			if down {
				log.Info("consumer: receiving again", "from", what)
			}
			pause, down = pauseMin, false
		})
		if ctx.Err() != nil {
			return
		}
		if !down {
			log.Warn("consumer: cannot receive, trying again", "from", what, "err", err)
			down = true
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, pauseMax)
	}
}
