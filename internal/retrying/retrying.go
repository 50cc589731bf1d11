// Package retrying waits between attempts of stores.
package retrying

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider/retry"
)

// Pause sleeps after the nth failure and reports whether ctx is still alive then.
func Pause(ctx context.Context, p retry.Policy, n int) bool {
	timer := time.NewTimer(p.Pause(n, rand.Float64()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
