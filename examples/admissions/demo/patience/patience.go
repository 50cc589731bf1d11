// Package patience retries functions.
package patience

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Until calls try until it succeeds, fails with the error hopeless, or ctx ends. In the last case
// it returns the last error that was not caused by the end of ctx.
func Until(ctx context.Context, every time.Duration, hopeless error, try func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for {
		err := try()
		if err == nil || errors.Is(err, hopeless) {
			return err
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", ctx.Err(), cmp.Or(last, err))
		}
	}
}
