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

// Persist is a consumer's way through outages: it calls attempt again and again, with pauses that grow while nothing
// works, until ctx ends. An attempt connects, calls working as soon as messages can come, and returns when they no
// longer can. The log is told once when an outage begins and once when it is over; what names the subscription there.
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
