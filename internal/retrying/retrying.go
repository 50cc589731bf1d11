// Package retrying waits between attempts of stores.
package retrying

import (
	"context"
	"math/rand/v2"

	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/retry"
)

// Pause sleeps after the nth failure and reports whether ctx is still alive then.
func Pause(ctx context.Context, p retry.Policy, n int) bool {
	return sleep.For(ctx, p.Pause(n, rand.Float64()))
}
